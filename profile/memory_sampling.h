// SPDX-License-Identifier: Apache-2.0
// Events that sample memory accesses inside a target. The recorder describes them in the arena, and targets report
// there what happened to the samples.
//
// The recorder chooses and fully encodes the events (collectors/pmu/). A target opens them unchanged for each of its
// threads and adjusts their periods.
#pragma once

#include <linux/perf_event.h>

#include <atomic>
#include <cstdint>

#include "profile/records.h"

namespace crosstalk::profile {

inline constexpr std::uint32_t most_memory_events = 4;  // loads and stores of two kinds of cores

struct MemoryEvent {
  perf_event_attr attr;          // complete, and only a period for ibs_kmod; its period is that to begin with
  perf_event_attr leader;        // the leader of its group; only with `has_leader`
  std::uint32_t has_leader = 0;  // 1: there is one, which switches both
  SourceKind source = SourceKind::pebs;
  WeightUnit weight_unit = WeightUnit::accesses;
  std::uint8_t accesses = 0;       // 0: loads, 1: stores, 2: both
  std::uint8_t period_random = 0;  // 1: the hardware varies the period; else the target has to
};

/// Constant once targets run.
struct MemorySampling {
  std::uint32_t events = 0;      // in `event`; 0: the clock alone samples
  std::uint32_t ring_bytes = 0;  // of a thread's ring without its first page; a power of two, of pages
  std::uint32_t one_unit = 1;    // 0: events of several units, of which a thread uses one at a time
  std::uint32_t reserved = 0;
  MemoryEvent event[most_memory_events] = {};  // event number n (Sample::event) is [n - 1]
};

/// Reasons why a thread's accesses are not sampled.
enum class MemoryRefusal : std::uint32_t {
  none = 0,
  descriptors = 1,    // there is no number for them that the program cannot miss
  locked_memory = 2,  // a ring takes more of it than the program can spare
  switches = 3,       // the thread switches so often that the events would cost more than the budget
  kernel = 4,         // `refusal_error` says why
};

/// Targets add, the recorder reads at the end.
struct MemoryCounts {
  std::atomic<std::uint64_t> accesses;          // were taken; and these samples were dropped:
  std::atomic<std::uint64_t> in_kernel;         // taken in the kernel
  std::atomic<std::uint64_t> without_access;    // of instructions that access no memory, or without its address
  std::atomic<std::uint64_t> half_updates;      // the store of an update, of which the load is sampled, too
  std::atomic<std::uint64_t> lost;              // the ring was full
  std::atomic<std::uint64_t> throttled;         // times that the kernel has stopped sampling
  std::atomic<std::uint32_t> missing_permille;  // the largest part of the time that an event had no counter
  std::atomic<std::uint32_t> clock_alone;       // threads whose accesses were not sampled, for a time or at all
  std::atomic<std::uint32_t> refusal;           // of the last of them: MemoryRefusal
  std::atomic<std::int32_t> refusal_error;      // errno
  std::atomic<std::uint32_t> without_counter;   // threads of which an event never had a counter
  std::atomic<std::uint32_t> reserved;
};

}  // namespace crosstalk::profile
