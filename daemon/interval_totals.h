// SPDX-License-Identifier: Apache-2.0
// Totals of an interval, from totals that count from a recording's begin. A recording that begins a new file from time
// to time (`record --switch-output`) tells in each file what belongs to that file's interval.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>

#include "daemon/row_sink.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// A thread's totals at the begin of an interval; all 0 for a thread that begins in it.
struct ThreadBase {
  std::uint64_t samples = 0, traps = 0, armed = 0, lost = 0;
  std::uint64_t handlers_ns = 0, switches_ns = 0, switches = 0, handler_samples_ns = 0;
  std::uint64_t ran_ns = 0, waited_ns = 0;
  std::uint64_t cpu_ns = 0;   // CPU time that it has used, as far as is known
  std::uint64_t told_ns = 0;  // the part of it that is in earlier files
};

/// Returns the row with the totals since `base`, of the part of [begin_ns, end_ns) in which the thread was there.
///
/// A thread's own clock was last read at its latest sample, so the scheduler's count tells the time since then. That
/// count is some milliseconds behind for a thread that runs. The row has no more CPU time than has elapsed, and the
/// rest is left to the next interval.
[[nodiscard]] profile::ThreadRow since(const ThreadBase& base, profile::ThreadRow row, std::uint64_t begin_ns,
                                       std::uint64_t end_ns);
/// Returns the base of the interval that follows one in which `row` has the totals since the recording's begin.
/// `told_ns`: the CPU time that since() has given the thread in it.
[[nodiscard]] ThreadBase base_after(const ThreadBase& base, const profile::ThreadRow& row, std::uint64_t told_ns);

/// The totals that a file begins with, and those that it has been told. All count from the recording's begin. Not
/// thread-safe.
class IntervalTotals {
 public:
  /// Each of these takes a row with totals since the recording's begin, and returns it with those of the interval
  /// [begin_ns, end_ns), or up to now.
  [[nodiscard]] profile::ThreadRow of(const profile::ThreadRow& row, std::uint64_t begin_ns, std::uint64_t end_ns);
  /// Of times in waits and regions, no more than `elapsed_ns`: the rest is left to the next interval.
  [[nodiscard]] profile::ThreadWaitRow of(const profile::ThreadWaitRow& row, std::uint64_t elapsed_ns);
  [[nodiscard]] profile::ThreadRegionRow of(const profile::ThreadRegionRow& row, std::uint64_t elapsed_ns);
  /// As above. `waits` of the result is the sum over the threads so far.
  [[nodiscard]] profile::Session of(const profile::Session& session);

  /// Returns the totals of the interval that follows. `is_known`: tells which threads may have more totals.
  template <class Known>
  [[nodiscard]] IntervalTotals next(Known is_known) const {
    IntervalTotals next;
    next.thread_bases_ = thread_bases_;  // one of which this file tells nothing may have more totals later
    for (const auto& [thread, told] : threads_) {
      next.thread_bases_[thread] = told.base_after;
    }
    std::erase_if(next.thread_bases_, [&](const auto& base) { return !is_known(ThreadId{base.first}); });
    const auto keep = [&](const auto& from, auto& to) {
      for (const auto& [key, row] : from) {
        if (is_known(row.thread)) {
          to[key] = row;
        }
      }
    };
    keep(wait_bases_, next.wait_bases_);
    keep(waits_, next.wait_bases_);
    keep(region_bases_, next.region_bases_);
    keep(regions_, next.region_bases_);
    next.session_base_ = session_;
    return next;
  }

 private:
  struct ToldThread {
    ThreadBase base_after;
    std::uint64_t ran_ns = 0, waited_ns = 0;  // of the interval
  };
  using WaitKey = std::tuple<std::uint32_t, profile::WaitKind, std::uint64_t>;  // thread, kind, site
  using RegionKey = std::pair<std::uint32_t, std::uint32_t>;                    // thread, region
  struct SessionBase {
    std::uint64_t recorder_cpu_ns = 0;
    profile::SkippedProbes skipped_probes;
    std::uint64_t unobserved_cpu_ns = 0;
  };

  std::unordered_map<std::uint32_t, ThreadBase> thread_bases_;  // by thread
  std::unordered_map<std::uint32_t, ToldThread> threads_;
  // The totals that earlier files have told, and those with this file's added.
  std::map<WaitKey, profile::ThreadWaitRow> wait_bases_, waits_;
  std::map<RegionKey, profile::ThreadRegionRow> region_bases_, regions_;
  SessionBase session_base_, session_;
};

}  // namespace crosstalk::daemon
