// SPDX-License-Identifier: Apache-2.0
// Processes a sample of a clock or of a memory event: finds its access, puts it on the bulletin board, perhaps watches
// it, and writes it. The steps are those inside a target (collectors/in_target/sampling/sampling.cpp).
#pragma once

#include <cstdint>
#include <memory>

#include "collectors/access/finder.h"
#include "collectors/observation.h"
#include "collectors/observer/line_prober.h"
#include "collectors/observer/perf_types.h"
#include "collectors/observer/targets.h"
#include "collectors/observer/watches.h"

namespace crosstalk::observer {

/// Not thread-safe.
class Sampling {
 public:
  /// All must outlive it.
  Sampling(Targets& targets, in_target::AccessFinder& finder, watch_policy::Budget& budget, Watches& watches);

  /// Takes a sample of the thread's clock.
  void take(WatchedThread& thread, const PerfSample& sample);
  /// Takes a sample of a memory event, which stands for `weight` of what the event counts. Returns its outcome: only an
  /// access is written.
  Measured take(WatchedThread& thread, const PerfSample& sample, const collectors::MemoryEvent& event,
                std::uint64_t weight);
  /// Returns the number of samples taken so far, of clocks and of memory events.
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  /// Returns the observer's own CPU time that went into probing lines.
  [[nodiscard]] std::uint64_t probing_ns() const { return prober_.own_ns(); }

 private:
  static collectors::Observation observe(WatchedThread& thread, const PerfSample& sample);
  void charge(WatchedThread& thread);
  void put(WatchedThread& thread, const PerfSample& sample, const collectors::Observation& seen);
  void locate(const PerfSample& sample, const WatchedThread& thread, collectors::Observation& seen);
  void watch(WatchedThread& thread, const collectors::Observation& seen, profile::Sample& record);
  void write(WatchedThread& thread, const PerfSample& sample, profile::Sample& record);

  Targets& targets_;
  in_target::AccessFinder& finder_;
  watch_policy::Budget& budget_;
  Watches& watches_;
  LineProber prober_;
  StackAllowance stacks_;
  std::uint64_t samples_ = 0;
};

}  // namespace crosstalk::observer
