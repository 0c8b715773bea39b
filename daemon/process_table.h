// SPDX-License-Identifier: Apache-2.0
// The processes and threads of a session: who has an id, who belongs to whom, what of it is to be written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/row_sink.h"
#include "profile/arena.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// The counters of a ThreadSlot, read at one moment.
struct SlotTotals {
  std::uint64_t lost = 0, samples = 0, traps = 0, armed = 0;
  std::uint64_t handlers_ns = 0, switches_ns = 0, switches = 0, cpu_ns = 0, handler_samples_ns = 0;
  profile::ClockKind clock = profile::ClockKind::automatic;
  std::uint32_t period_us = 0;
};
/// Call it after state was loaded with acquire as `ended`, and the totals are final and agree.
[[nodiscard]] SlotTotals totals_of(const profile::ThreadSlot& slot);

/// Gives out ProcessIds and ThreadIds, dense from 0. A pid may be several processes, one after the other
/// (exec, reuse); a thread belongs to the youngest of its pid that is not younger than itself.
/// Rows are kept here, and put when they have changed, by flush(). Not thread-safe.
class ProcessTable {
 public:
  explicit ProcessTable(RowSink& sink) : sink_(&sink) {}

  /// A process has attached. An older one of the same pid has ended by then.
  ProcessId begin_process(const profile::ProcessStart& record, std::string executable, std::string command);
  /// The process that `pid` was at `time_ns`; one without a name is made when none is known.
  ProcessId process_at(std::int32_t pid, std::uint64_t time_ns);
  [[nodiscard]] std::optional<ProcessId> find_process(std::int32_t pid, std::uint64_t time_ns) const;
  [[nodiscard]] std::optional<ProcessId> latest_process(std::int32_t pid) const;
  /// The youngest process of `pid` has ended, at this time at the latest.
  void end_process(std::int32_t pid, std::uint64_t time_ns);
  void set_exit_status(std::int32_t pid, int status, std::uint64_t time_ns);

  ThreadId begin_thread(std::int32_t tid, std::uint64_t time_ns);
  /// For changes: the row is put with the next flush().
  profile::ProcessRow& change(ProcessId id);
  profile::ThreadRow& change(ThreadId id);
  void update(ThreadId id, const SlotTotals& totals);

  [[nodiscard]] const std::vector<profile::ProcessRow>& processes() const { return processes_; }
  [[nodiscard]] const std::vector<profile::ThreadRow>& threads() const { return threads_; }

  /// Puts the rows that have changed.
  void flush();
  /// Puts all rows: those put before may be lost.
  void put_everything();

 private:
  ProcessId add_process(profile::ProcessRow row);

  RowSink* sink_;
  std::vector<profile::ProcessRow> processes_;
  std::vector<profile::ThreadRow> threads_;
  std::vector<bool> process_changed_, thread_changed_;
  std::vector<std::uint32_t> changed_processes_, changed_threads_;
  std::unordered_map<std::int32_t, std::vector<ProcessId>> by_pid_;  // in order of their begin
};

}  // namespace crosstalk::daemon
