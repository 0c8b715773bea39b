// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "daemon/interval_totals.h"
#include "daemon/process_table.h"
#include "daemon/profile_sink.h"
#include "daemon/row_sink.h"
#include "profile/writer.h"

namespace crosstalk::daemon {

/// The moment that divides two files of a recording. Watches are numbered in the order of their begin, so the number of
/// the last one tells to which file a watch belongs, and its sample and traps with it.
struct Boundary {
  std::uint64_t time_ns = 0;
  std::uint32_t watch = 0;  // the last one that began before
  StackId stack;            // the last one that was put before
  bool first = false;       // no file came before

  /// True if a row of the file that this begins may not have this moment.
  [[nodiscard]] bool is_after(std::uint64_t moment_ns) const { return !first && moment_ns < time_ns; }
  [[nodiscard]] bool is_after(WatchId of) const { return !first && static_cast<std::int32_t>(of.value - watch) <= 0; }
};

/// Ids of a kind of rows in one file: without gaps from 0 on, in the order of their first use.
template <class Id>
class FileIds {
 public:
  /// Returns the id that a row of the file refers to; its own row is then owed.
  Id of(Id id) {
    const auto [known, fresh] = ids_.try_emplace(id.value, static_cast<std::uint32_t>(ids_.size()));
    if (fresh) {
      owed_.push_back(id);
    }
    return Id{known->second};
  }
  [[nodiscard]] std::optional<Id> find(Id id) const {
    const auto known = ids_.find(id.value);
    return known != ids_.end() ? std::optional(Id{known->second}) : std::nullopt;
  }
  /// Returns the id of a row that is put now.
  Id put(Id id) {
    const Id told = of(id);
    std::erase(owed_, id);
    return told;
  }
  /// The rows that others refer to and that have not been put.
  [[nodiscard]] const std::vector<Id>& owed() const { return owed_; }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> ids_;
  std::vector<Id> owed_;
};

/// One of several files of a recording: a complete profile of its interval. Rows are put with the recording's ids and
/// with totals since the recording's begin; the file has ids of its own and the interval's totals. Not thread-safe.
class ProfileFile final : public RowSink {
 public:
  /// Without a writer, all rows are dropped, but totals are still divided rightly. `processes` has the rows that others
  /// refer to, and outlives this.
  ProfileFile(Result<profile::ProfileWriter> writer, std::function<void(const std::string&)> warn,
              const ProcessTable& processes, Boundary begin);

  void put(const profile::ProcessRow& row) override;
  void put(const profile::ThreadRow& row) override;
  void put(const profile::ModuleRow& row) override;
  void put(const profile::SampleRow& row) override;
  void put(const profile::WatchRow& row) override;
  void put(const profile::TrapRow& row) override;
  void put(const profile::BlockRow& row) override;
  void put(const profile::SharedMappingRow& row) override;
  void put(const profile::ThreadCreationRow& row) override;
  void put(const profile::ThreadWaitRow& row) override;
  void put(const profile::SampledWaitRow& row) override;
  void put(const profile::RegionRow& row) override { sink_.put(row); }
  void put(const profile::ThreadRegionRow& row) override;
  void put(const profile::LookaheadRow& row) override;
  void put(const profile::ReadingRow& row) override;
  void put(const profile::StackRow& row) override;
  void put(const profile::MessageRow& row) override { sink_.put(row); }
  void put(const profile::CounterRow& row) { sink_.put(row); }
  void put(const profile::EventRow& row) { sink_.put(row); }
  void put(const profile::KeptFileRow& row) { sink_.put(row); }
  void put(const profile::Session& session);

  /// Begins with the totals of all files before this one. Call it before the first total is put.
  void begin_with(IntervalTotals totals) { totals_ = std::move(totals); }
  /// Totals that are put from now on count up to `now_ns`.
  void set_now(std::uint64_t now_ns) { now_ns_ = now_ns; }
  /// Ends the interval: returns the totals with which the next one begins. Rows that are put later have none.
  [[nodiscard]] IntervalTotals end();
  void commit();

  [[nodiscard]] const Boundary& begin() const { return begin_; }
  [[nodiscard]] bool has(ThreadId id) const { return threads_.find(id).has_value(); }
  [[nodiscard]] bool has(ProcessId id) const { return processes_.find(id).has_value(); }
  [[nodiscard]] ProfileSink& sink() { return sink_; }
  [[nodiscard]] const ProfileSink& sink() const { return sink_; }

 private:
  void put_owed();
  [[nodiscard]] bool was_there(ProcessId id) const;
  [[nodiscard]] std::uint64_t clamped(std::uint64_t time_ns) const { return std::max(time_ns, begin_.time_ns); }
  [[nodiscard]] std::uint64_t clipped(std::uint64_t weight_ns, std::uint64_t time_ns) const;
  [[nodiscard]] StackId stack_in_file(StackId id) const;
  template <class Row>
  void put_of_thread(const Row& row);

  ProfileSink sink_;
  const ProcessTable* known_;
  Boundary begin_;
  std::uint64_t now_ns_;
  bool ended_ = false;
  bool sums_are_old_ = false;                // a thread's totals came after the session, which has their sums
  std::optional<profile::Session> session_;  // as last put, with totals of the recording
  IntervalTotals totals_;
  FileIds<ProcessId> processes_;
  FileIds<ThreadId> threads_;
  std::unordered_map<std::uint32_t, std::uint32_t> stacks_before_;  // ids of those from before the file
};

}  // namespace crosstalk::daemon
