// SPDX-License-Identifier: Apache-2.0
// The sources of observations that a thread can be sampled by. A source is a type without objects: it keeps its state
// of a thread in ThreadState, and ThreadState::clock tells which one a thread uses. This needs no table of virtual
// functions, which a library without a C++ runtime would have to relocate. All signal-safe.
#pragma once

#include <ucontext.h>

#include <concepts>
#include <cstdint>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/observation.h"

namespace crosstalk::in_target {

/// `open`: begins to sample a thread of this process each time so much of the source's quantity has passed (nanoseconds
/// of CPU time for a clock), the first time after `first`; false if it cannot. `begun`: called in the handler of that
/// first time. `deliver`: called in the handler of its signal; returns what was interrupted. `delivery_ns`: the cost of
/// a signal without its handler.
template <class S>
concept SampleSource = requires(ThreadState& thread, std::uint64_t period, const ucontext_t& context) {
  { S::open(thread, period, period) } -> std::same_as<bool>;
  { S::begun(thread) } -> std::same_as<void>;
  { S::set_period(thread, period) } -> std::same_as<void>;
  { S::close(thread) } -> std::same_as<void>;
  { S::deliver(thread, context) } -> std::same_as<collectors::Observation>;
  { S::delivery_ns() } -> std::same_as<std::uint64_t>;
};

/// A timer of the thread's CPU time: costs nothing at context switches, no finer than the kernel's tick.
struct PosixTimer {
  static bool open(ThreadState& self, std::uint64_t first_ns, std::uint64_t period_ns);
  static void begun(ThreadState& self);
  static void set_period(ThreadState& self, std::uint64_t period_ns);
  static void close(ThreadState& thread);
  static collectors::Observation deliver(const ThreadState& self, const ucontext_t& context);
  static std::uint64_t delivery_ns();
};

/// The kernel's software event: any period, and a few microseconds at each context switch.
struct PerfTaskClock {
  static bool open(ThreadState& self, std::uint64_t first_ns, std::uint64_t period_ns);
  static void begun(ThreadState& self);
  static void set_period(ThreadState& self, std::uint64_t period_ns);
  static void close(ThreadState& thread);
  static collectors::Observation deliver(const ThreadState& self, const ucontext_t& context);
  static std::uint64_t delivery_ns();
};

static_assert(SampleSource<PosixTimer> && SampleSource<PerfTaskClock>);

/// `use` of the source that the thread is sampled by.
template <class Use>
auto with_source(const ThreadState& thread, Use use) {
  return thread.clock == profile::ClockKind::perf ? use(PerfTaskClock{}) : use(PosixTimer{});
}

}  // namespace crosstalk::in_target
