// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/clocks.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "collectors/in_target/sampling/thread_timer.h"
#include "collectors/in_target/session/runtime.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/watch_events.h"

namespace crosstalk::in_target {
namespace {

using profile::ClockKind;

constexpr std::uint64_t longest_period_ns = 64'000'000;
constexpr std::uint64_t review_samples = 16;
constexpr std::uint64_t first_review = 2;  // soon: a thread may be one that switches all the time
constexpr double clock_share = 0.5;        // of the budget that the clock alone may take

// POSIX timers of CPU time are looked at once in a tick. It is asked for once: it does not change.
std::uint64_t tick_ns() {
  constexpr std::uint64_t usual_ns = 4'000'000;
  static constinit std::atomic<std::uint64_t> known{0};
  std::uint64_t tick = known.load(std::memory_order_relaxed);
  if (tick == 0) {
    timespec resolution{};
    const bool answered = system_call(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, &resolution) >= 0;
    tick = answered && resolution.tv_nsec > 0 ? static_cast<std::uint64_t>(resolution.tv_nsec) : usual_ns;
    known.store(tick, std::memory_order_relaxed);
  }
  return tick;
}

std::uint64_t context_switches() {
  rusage usage{};
  system_call(SYS_getrusage, RUSAGE_THREAD, &usage);
  return static_cast<std::uint64_t>(usage.ru_nvcsw) + static_cast<std::uint64_t>(usage.ru_nivcsw);
}

bool start_posix(ThreadState& self) {
  if (self.timer_number != 0) {
    return set_thread_timer(self.timer_number - 1, self.period_ns) >= 0;
  }
  const long timer = start_thread_timer(self.tid.load(std::memory_order_relaxed), self.period_ns);
  self.timer_number = timer >= 0 ? static_cast<std::int32_t>(timer) + 1 : 0;
  return timer >= 0;
}

// Another thread may do it as well.
void stop_posix(ThreadState& thread) {
  const std::int32_t number = std::atomic_ref(thread.timer_number).exchange(0, std::memory_order_acq_rel);
  if (number != 0) {
    delete_thread_timer(number - 1);
  }
}

bool start_perf(ThreadState& self) { return open_clock_event(self.period_ns, self.clock_event) >= 0; }

// The shortest time between two samples.
std::uint64_t true_period_ns(const ThreadState& self) {
  return self.clock == ClockKind::posix ? std::max(self.period_ns, tick_ns()) : self.period_ns;
}

void publish(ThreadState& self) {
  self.slot->clock.store(static_cast<std::uint32_t>(self.clock), std::memory_order_relaxed);
  self.slot->period_us.store(static_cast<std::uint32_t>(true_period_ns(self) / 1000), std::memory_order_relaxed);
}

void become(ThreadState& self, ClockKind kind) {
  if (kind == ClockKind::perf) {
    if (!start_perf(self)) {
      return;
    }
    stop_posix(self);
  } else {
    if (!start_posix(self)) {
      return;
    }
    close_event(self.clock_event);
  }
  self.clock = kind;
}

void set_period(ThreadState& self, std::uint64_t period_ns) {
  self.period_ns = period_ns;
  if (self.clock == ClockKind::perf) {
    set_clock_period(self.clock_event, period_ns);
  } else {
    start_posix(self);
  }
}

struct Spell {  // what a thread did since the last review
  double cpu_ns, handlers_ns, switches, samples;
};

// The cost of each kind of clock for what the thread does, as a fraction of its CPU time.
double perf_cost(const Spell& spell, std::uint64_t period_ns, const profile::SessionConfig& config) {
  const double sampling =
      (config.perf_sample_cost_ns + spell.handlers_ns / spell.samples) / static_cast<double>(period_ns);
  return sampling + spell.switches * config.switch_cost_ns / spell.cpu_ns;
}

void no_clock() {
  static constinit std::atomic<bool> said{false};
  if (!said.exchange(true, std::memory_order_relaxed)) {
    emit_message("no_clock",
                 "some threads are not sampled: of the limit of pending signals (ulimit -i) too little is free for "
                 "their timers");
  }
}

void adapt(ThreadState& self, const Spell& spell) {
  const profile::SessionConfig& config = runtime().config;
  const double allowed = config.budget * clock_share;
  const bool fine = config.period_ns < tick_ns();  // finer than a POSIX timer can be
  const bool may_perf = config.perf_allowed != 0 && config.clock != ClockKind::posix && fine;
  if (self.clock == ClockKind::posix && may_perf && perf_cost(spell, config.period_ns, config) < allowed) {
    self.period_ns = config.period_ns;
    become(self, ClockKind::perf);
  } else if (self.clock == ClockKind::perf && config.clock != ClockKind::perf &&
             spell.switches * config.switch_cost_ns > allowed * spell.cpu_ns) {
    self.period_ns = config.period_ns;
    become(self, ClockKind::posix);
    if (self.clock == ClockKind::perf) {  // there is no timer for it, and this one costs too much
      stop_clock(self);
      no_clock();
    }
  }
  // What is left is the handlers' own cost: the period follows it, down to the one that was asked for.
  const double cost = spell.handlers_ns / spell.cpu_ns;
  if (cost > allowed && self.period_ns < longest_period_ns) {
    set_period(self, true_period_ns(self) * 2);
  } else if (cost < allowed / 4 && self.period_ns / 2 >= config.period_ns) {
    set_period(self, self.period_ns / 2);
  }
}

}  // namespace

void start_clock(ThreadState& self) {
  const profile::SessionConfig& config = runtime().config;
  stop_clock(self);  // that of a thread before it with the same number, or of before a failed exec
  self.period_ns = config.period_ns;
  self.next_review = first_review;
  self.review_switches = self.charged_switches = context_switches();
  self.review_cpu_ns = thread_cpu_ns();
  self.clock = ClockKind::automatic;
  const bool may_perf = config.clock != ClockKind::posix && config.perf_allowed != 0;
  if (config.clock == ClockKind::perf && may_perf && start_perf(self)) {
    self.clock = ClockKind::perf;
  } else if (start_posix(self)) {
    self.clock = ClockKind::posix;
  } else if (may_perf && start_perf(self)) {
    self.clock = ClockKind::perf;
  } else {
    no_clock();
  }
  publish(self);
}

void stop_clock(ThreadState& self) {
  stop_posix(self);
  close_event(self.clock_event);
}

namespace {

// Switches come in bursts: who followed each would keep events open just when the next one comes.
void review_events(ThreadState& self, std::uint64_t switches, std::uint64_t cpu_ns) {
  constexpr std::uint64_t memory = 8;  // reviews
  const profile::SessionConfig& config = runtime().config;
  self.recent_switches += switches - self.recent_switches / memory;
  self.recent_cpu_ns += cpu_ns - self.recent_cpu_ns / memory;
  self.keeps_events = worth_keeping(self.recent_switches, self.recent_cpu_ns, config.budget, config.presence_cost_ns,
                                    self.keeps_events);
}

// The part of the time since the last charge that the thread had open watchpoints.
double part_watched(ThreadState& self) {
  const std::uint64_t now_ns = monotonic_ns();
  const std::uint64_t watched_ns = runtime().watch.watched_ns();
  const auto passed = static_cast<double>(now_ns - self.charged_ns);
  const auto watched = static_cast<double>(watched_ns - self.charged_watched_ns);
  self.charged_ns = now_ns;
  self.charged_watched_ns = watched_ns;
  if (self.watch_events.load(std::memory_order_relaxed) == 0) {
    return 0;
  }
  return self.on_demand.load(std::memory_order_relaxed) == 0 || watched >= passed ? 1 : watched / passed;
}

}  // namespace

void charge_switches(ThreadState& self) {
  const profile::SessionConfig& config = runtime().config;
  const std::uint64_t switches = context_switches();
  const std::uint64_t count = switches - self.charged_switches;
  self.charged_switches = switches;
  self.slot->switches.store(switches, std::memory_order_relaxed);
  const std::uint64_t clock_ns = self.clock == ClockKind::perf ? count * config.switch_cost_ns : 0;
  const auto presence_ns =
      static_cast<std::uint64_t>(part_watched(self) * static_cast<double>(count * config.presence_cost_ns));
  self.slot->switches_ns.fetch_add(clock_ns + presence_ns, std::memory_order_relaxed);
  runtime().budget.spend(clock_ns + presence_ns);
}

void review_clock(ThreadState& self, std::uint64_t cpu_ns) {
  if (self.samples < self.next_review) {
    return;
  }
  self.next_review = self.samples + review_samples;
  charge_switches(self);
  const std::uint64_t switches = self.charged_switches;
  const std::uint64_t handlers = self.slot->handler_samples_ns.load(std::memory_order_relaxed);
  const Spell spell{
      static_cast<double>(cpu_ns - self.review_cpu_ns) + 1, static_cast<double>(handlers - self.review_handlers_ns),
      static_cast<double>(switches - self.review_switches), static_cast<double>(self.samples - self.review_samples)};
  adapt(self, spell);
  review_events(self, switches - self.review_switches, cpu_ns - self.review_cpu_ns + 1);
  publish(self);
  self.review_samples = self.samples;
  self.review_cpu_ns = cpu_ns;
  self.review_handlers_ns = handlers;
  self.review_switches = switches;
}

}  // namespace crosstalk::in_target
