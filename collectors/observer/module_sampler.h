// SPDX-License-Identifier: Apache-2.0
// Samples one thread by our kernel module for IBS (docs/kmod.md), where perf has none: has a context of the thread, its
// ring, and its pace. Its samples go the way of perf's samples of IBS: the same registers, decoded by the same code
// (measured_access.h).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "collectors/memory_samples/module_records.h"
#include "collectors/observer/arena_ring.h"
#include "collectors/observer/perf_types.h"
#include "collectors/pmu/memory_events.h"
#include "kmod/crosstalk_ibs.h"

namespace crosstalk::observer {

/// Movable. Not thread-safe.
class ModuleSampler {
 public:
  /// Opens a disabled context of the thread. `event` outlives it; `period`: to begin with. Errors: not_found (the
  /// thread is gone), permission, system.
  [[nodiscard]] static Result<ModuleSampler> open(const collectors::MemoryEvent& event, pid_t tid,
                                                  std::uint64_t period);
  void enable();

  struct Sampled {
    PerfSample sample;
    std::uint64_t weight = 0;  // in the event's unit
  };
  struct Batch {
    std::vector<Sampled> samples;
    std::shared_ptr<std::vector<std::byte>> bytes;  // that the samples refer to
    std::uint64_t lost = 0;                         // since the last call: the ring was full
  };
  /// Returns the samples that have come since the last call.
  [[nodiscard]] Batch drain();
  /// Draws a new period if it is due, for a sample in `wanted_ns` of running time.
  void keep_pace(std::uint64_t now_ns, std::uint64_t wanted_ns, std::uint64_t& random);
  [[nodiscard]] std::uint64_t period() const { return pace_.period(); }
  [[nodiscard]] const collectors::MemoryEvent& event() const { return *event_; }
  /// Readable when there is a sample.
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  ModuleSampler(UniqueFd fd, MappedMemory ring, const crosstalk_ibs_info& info, const collectors::MemoryEvent& event,
                std::uint64_t period)
      : fd_(std::move(fd)), ring_(std::move(ring)), info_(info), event_(&event), pace_(event, period) {}

  UniqueFd fd_;
  MappedMemory ring_;
  crosstalk_ibs_info info_;
  const collectors::MemoryEvent* event_;
  EventPace pace_;
  std::uint64_t lost_ = 0;  // as the ring said last
};

}  // namespace crosstalk::observer
