// SPDX-License-Identifier: Apache-2.0
// The attributes of the events that are opened on a thread of another process. Pure functions.
//
// A thread's clock and its watchpoints write into one ring, and have the same fields, so that a record can be parsed
// before its event is known. Events that sample memory accesses report more of each, and have rings of their own.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>

#include "collectors/observer/perf_types.h"
#include "collectors/pmu/memory_events.h"
#include "collectors/watch_policy/runs.h"

namespace crosstalk::observer {

/// Bytes of stack in a sample of the clock: enough for the code's own frames.
inline constexpr std::uint32_t clock_stack_bytes = 4096;
/// In one of a watched access: the words in which compilers keep what registers have no room for, and some callers.
inline constexpr std::uint32_t watch_stack_bytes = 1024;

struct ClockSettings {
  std::uint64_t period_ns = 0;
  bool with_kernel = false;        // also what the thread does in the kernel; not every user may ask for that
  std::uint32_t wakeup_bytes = 1;  // bytes in the ring after which waiters are woken; 1: at each record
};
/// Returns the attributes of a clock of the thread's CPU time. It begins disabled, and reports the threads and
/// processes that the thread makes.
[[nodiscard]] perf_event_attr clock_attributes(const ClockSettings& settings);

struct WatchedPlace {
  std::uint64_t address = 0;                                           // aligned to `length`
  std::uint32_t length = 8;                                            // 1, 2, 4 or 8
  watch_policy::WatchMode mode = watch_policy::WatchMode::read_write;  // not off
};
/// A data breakpoint that reports each access into the ring. It begins disabled.
[[nodiscard]] perf_event_attr watch_attributes(const WatchedPlace& place);

/// Returns the attributes of an event that samples memory accesses: the chosen event, and in its samples also the count
/// so far, the registers and some stack. It begins disabled.
[[nodiscard]] perf_event_attr measuring_attributes(const collectors::MemoryEvent& event, std::uint64_t period);
/// Returns those of the event that leads its group, if it has one.
[[nodiscard]] perf_event_attr leading_attributes(const collectors::MemoryEvent& event);
[[nodiscard]] SampleLayout layout_of(const collectors::MemoryEvent& event);

}  // namespace crosstalk::observer
