// SPDX-License-Identifier: Apache-2.0
// The processes and threads of a session: their ids, their relations, and their changed rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "daemon/row_sink.h"
#include "profile/arena.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// The counters of a ThreadSlot, read at one moment.
struct SlotTotals {
  std::uint64_t lost = 0, samples = 0, traps = 0;
  std::uint64_t handlers_ns = 0, switches_ns = 0, switches = 0, cpu_ns = 0, handler_samples_ns = 0;
  profile::ClockKind clock = profile::ClockKind::automatic;
  std::uint32_t period_us = 0;
};
/// Reads the totals. They are final and consistent if the state was loaded with acquire as `ended` before.
[[nodiscard]] SlotTotals totals_of(const profile::ThreadSlot& slot);

/// Assigns ProcessIds and ThreadIds, dense from 0. A pid may be several processes in turn (exec, reuse); a thread
/// belongs to the youngest process of its pid that is not younger than itself. Keeps rows and puts the changed ones at
/// flush(); evict() drops those that are over. Not thread-safe.
class ProcessTable {
 public:
  explicit ProcessTable(RowSink& sink) : sink_(&sink) {}

  /// Adds a process that has attached. An older one of the same pid has ended.
  ProcessId begin_process(const profile::ProcessStart& record, std::string executable, std::string command);
  /// Adds a program that goes unobserved; row.unobserved_because says why, and no record of it follows. Without a
  /// `parent_pid`, takes the parent of the process that executed it, if that was observed.
  void add_unobserved(profile::ProcessRow row);
  /// Returns the process of `pid` at `time_ns`; creates an unnamed one if none is known.
  ProcessId process_at(std::int32_t pid, std::uint64_t time_ns);
  [[nodiscard]] std::optional<ProcessId> find_process(std::int32_t pid, std::uint64_t time_ns) const;
  [[nodiscard]] std::optional<ProcessId> latest_process(std::int32_t pid) const;
  /// Notes that the youngest process of `pid` has ended, at `time_ns` or earlier.
  void end_process(std::int32_t pid, std::uint64_t time_ns);
  void set_exit_status(std::int32_t pid, int status, std::uint64_t time_ns);

  ThreadId begin_thread(std::int32_t tid, std::uint64_t time_ns);
  /// Closes a thread, which sends no more records.
  void close_thread(ThreadId id);
  /// Returns a row to change; the next flush() puts it.
  profile::ProcessRow& change(ProcessId id);
  profile::ThreadRow& change(ThreadId id);
  void update(ThreadId id, const SlotTotals& totals);

  /// Precondition: known, that is, not evicted.
  [[nodiscard]] const profile::ProcessRow& process(ProcessId id) const { return processes_.at(id.value).row; }
  [[nodiscard]] const profile::ThreadRow& thread(ThreadId id) const { return threads_.at(id.value).row; }
  /// Null: not known, or not any more.
  [[nodiscard]] const profile::ProcessRow* find(ProcessId id) const { return row_in(processes_, id.value); }
  [[nodiscard]] const profile::ThreadRow* find(ThreadId id) const { return row_in(threads_, id.value); }
  [[nodiscard]] std::size_t known_processes() const { return processes_.size(); }
  [[nodiscard]] std::size_t known_threads() const { return threads_.size(); }
  /// Returns the number of processes, past ones included, that are or were observed.
  [[nodiscard]] std::uint32_t processes_begun() const { return next_process_ - unobserved_; }

  /// Sums over all threads, past ones included.
  struct Spent {
    std::uint64_t observing_ns = 0, cpu_ns = 0;
  };
  [[nodiscard]] Spent spent() const;

  /// Adds the time that a sample of the thread stands for.
  void sampled(ThreadId id, std::uint64_t ns) { sampled_ns_[id.value] += ns; }

  /// Puts the changed rows.
  void flush();
  /// Puts all rows again, because earlier ones may be lost.
  void put_everything();
  /// Puts the rows of processes and threads that have not ended into `sink`, in the order of their ids.
  void put_living(RowSink& sink) const;
  /// Returns the processes that have not ended, in the order of their ids.
  [[nodiscard]] std::vector<ProcessId> living() const;
  [[nodiscard]] bool lives(ProcessId id) const { return lives(find(id)); }
  [[nodiscard]] bool lives(ThreadId id) const { return lives(find(id)); }
  /// Forgets closed threads, and processes that were unobserved, or ended before `before_ns` and are not `in_use`, if
  /// their rows have been put. Returns these processes.
  std::vector<ProcessId> evict(std::uint64_t before_ns, const std::unordered_set<std::uint32_t>& in_use);

 private:
  template <class Row>
  struct Entry {
    Row row;
    bool changed = false, closed = false;
  };
  template <class Id, class Entries>
  [[nodiscard]] static std::vector<Id> living_in(const Entries& entries);
  template <class Row>
  [[nodiscard]] static bool lives(const Row* row) {
    return row != nullptr && row->end_ns == 0;
  }
  template <class Row>
  static const Row* row_in(const std::unordered_map<std::uint32_t, Entry<Row>>& entries, std::uint32_t id) {
    const auto known = entries.find(id);
    return known != entries.end() ? &known->second.row : nullptr;
  }
  ProcessId add_process(profile::ProcessRow row);
  [[nodiscard]] std::uint64_t cpu_time_ns(const profile::ThreadRow& row) const;

  RowSink* sink_;
  std::unordered_map<std::uint32_t, Entry<profile::ProcessRow>> processes_;
  std::unordered_map<std::uint32_t, Entry<profile::ThreadRow>> threads_;
  std::uint32_t next_process_ = 0, next_thread_ = 0;
  std::uint32_t unobserved_ = 0;  // of the processes
  Spent evicted_;
  std::unordered_map<std::uint32_t, std::uint64_t> sampled_ns_;  // by thread
  std::vector<std::uint32_t> changed_processes_, changed_threads_;
  std::unordered_map<std::int32_t, std::vector<ProcessId>> by_pid_;  // in order of their begin
};

}  // namespace crosstalk::daemon
