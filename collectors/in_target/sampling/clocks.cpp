// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/clocks.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sampling/presence.h"
#include "collectors/in_target/sampling/sample_source.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_unit.h"
#include "collectors/watch_policy/thread_clock.h"

namespace crosstalk::in_target {
namespace {

using profile::ClockKind;

constexpr std::uint64_t longest_period_ns = 64'000'000;
constexpr std::uint64_t review_samples = 16;
constexpr std::uint64_t first_review = 2;  // soon: a thread may be one that switches all the time
constexpr double clock_share = 0.5;        // of the budget that the clock alone may take

constinit watch_policy::ThreadLives the_lives;
constinit std::atomic<std::uint64_t> mean_handler_ns{10'000};  // of a sample, watching aside; at first a guess

// Returns the kernel's tick: it checks POSIX timers of CPU time once a tick. Asks once: the tick does not change.
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

// The shortest time between two samples.
std::uint64_t true_period_ns(const ThreadState& self) {
  return self.clock == ClockKind::posix ? std::max(self.period_ns, tick_ns()) : self.period_ns;
}

void publish(ThreadState& self) {
  self.slot->clock.store(static_cast<std::uint32_t>(self.clock), std::memory_order_relaxed);
  self.slot->period_us.store(static_cast<std::uint32_t>(true_period_ns(self) / 1000), std::memory_order_relaxed);
}

/// Changes from one source to the other; keeps the present one if that fails.
template <SampleSource From, SampleSource To>
void change(ThreadState& self, ClockKind kind) {
  if (To::open(self, self.period_ns, self.period_ns)) {
    From::close(self);
    self.clock = kind;
  }
}

void set_period(ThreadState& self, std::uint64_t period_ns) {
  self.period_ns = period_ns;
  with_source(self, [&](auto source) { source.set_period(self, period_ns); });
}

struct Spell {  // a thread's activity since the last review
  double cpu_ns, handlers_ns, switches, samples;
  double accesses;  // that were sampled
};

// Returns the cost of each kind of clock for a thread's activity, as a fraction of its CPU time.
double perf_cost(const Spell& spell, std::uint64_t period_ns, const profile::SessionConfig& config) {
  const double sampling =
      (config.perf_sample_cost_ns + spell.handlers_ns / spell.samples) / static_cast<double>(period_ns);
  return sampling + spell.switches * config.switch_cost_ns / spell.cpu_ns;
}

void no_clock() {
  static constinit Once once;
  if (once.first()) {
    emit_message("no_clock",
                 "some threads are not sampled: of the limit of pending signals (ulimit -i) too little is free for "
                 "their timers; from outside, crosstalk record --observer, they need none");
  }
}

void adapt(ThreadState& self, const Spell& spell) {
  const profile::SessionConfig& config = runtime().config;
  const double allowed = config.budget * clock_share;
  const bool fine = config.period_ns < tick_ns();  // finer than a POSIX timer can be
  const bool may_perf = config.perf_allowed != 0 && config.clock != ClockKind::posix && fine;
  if (self.clock == ClockKind::posix && may_perf && perf_cost(spell, config.period_ns, config) < allowed) {
    self.period_ns = config.period_ns;
    change<PosixTimer, PerfTaskClock>(self, ClockKind::perf);
  } else if (self.clock == ClockKind::perf && config.clock != ClockKind::perf &&
             spell.switches * config.switch_cost_ns > allowed * spell.cpu_ns) {
    self.period_ns = config.period_ns;
    change<PerfTaskClock, PosixTimer>(self, ClockKind::posix);
    if (self.clock == ClockKind::perf) {  // there is no timer for it, and this one costs too much
      stop_clock(self);
      no_clock();
    }
  }
  // The rest is the handlers' own cost: the period follows it, down to the one that was asked for.
  const double accesses_ns = spell.accesses * static_cast<double>(MemoryEvents::delivery_ns());
  const double cost = (spell.handlers_ns + accesses_ns) / spell.cpu_ns;
  if (cost > allowed && self.period_ns < longest_period_ns) {
    set_period(self, true_period_ns(self) * 2);
  } else if (cost < allowed / 4 && self.period_ns / 2 >= config.period_ns) {
    set_period(self, self.period_ns / 2);
  }
}

/// Threads that come and go are over before a review could give them the fine clock, and ticks fall at the same points
/// of their lives. So they begin with it, all or one in some, as the budget affords for threads of their length. No
/// period: they begin with the coarse one, as others do.
watch_policy::BriefClock clock_of_brief_threads(const profile::SessionConfig& config) {
  constexpr std::uint64_t open_and_close_ns = 40'000;  // including our other work at a thread's begin and end
  const std::uint64_t handler_ns = mean_handler_ns.load(std::memory_order_relaxed);
  if (config.clock != ClockKind::automatic || config.perf_allowed == 0 || !the_lives.brief(tick_ns())) {
    return {};
  }
  const auto switching_ns = static_cast<std::uint64_t>(the_lives.mean_switches() * config.switch_cost_ns);
  return watch_policy::brief_clock({open_and_close_ns + switching_ns, config.perf_sample_cost_ns + handler_ns},
                                   the_lives.mean_ns(), config.period_ns, tick_ns(), config.budget * clock_share);
}

/// `after_ns`: CPU time in which it does not tick, here and below.
bool open_fine(ThreadState& self, std::uint64_t after_ns) {
  self.first_weight_ns = self.period_ns * self.one_in;
  const std::uint64_t first_ns = after_ns + watch_policy::first_expiry(self.period_ns, self.random);
  return PerfTaskClock::open(self, first_ns, self.period_ns);
}

bool open_coarse(ThreadState& self, std::uint64_t after_ns) {
  const std::uint64_t first_ns = after_ns + watch_policy::first_tick(self.period_ns, tick_ns(), self.random);
  self.first_weight_ns = std::max(self.period_ns, tick_ns());
  return PosixTimer::open(self, first_ns, self.period_ns);
}

/// Opens a new thread's first clock: the coarse one, unless the fine one is asked for, there is no other, or threads
/// are short-lived. Some short-lived threads get the fine clock; the others get a clock that begins when each stands
/// for itself alone. Returns `automatic` if no clock can be opened.
ClockKind open_first(ThreadState& self, const profile::SessionConfig& config) {
  const bool may_perf = config.clock != ClockKind::posix && config.perf_allowed != 0;
  const watch_policy::BriefClock brief = clock_of_brief_threads(config);
  const bool drawn = brief.period_ns != 0 && watch_policy::is_drawn(brief.one_in, self.random);
  const std::uint64_t alone_after_ns = brief.one_in > 1 ? watch_policy::alone_from(the_lives.mean_ns(), tick_ns()) : 0;
  if (drawn) {
    self.period_ns = brief.period_ns;
    self.one_in = brief.one_in;
    self.alone_from_ns = thread_cpu_ns() + alone_after_ns;
  }
  if (may_perf && (config.clock == ClockKind::perf || drawn) && open_fine(self, 0)) {
    return ClockKind::perf;
  }
  self.one_in = 1;
  self.period_ns = config.period_ns;
  if (open_coarse(self, alone_after_ns)) {
    return ClockKind::posix;
  }
  return may_perf && open_fine(self, alone_after_ns) ? ClockKind::perf : ClockKind::automatic;
}

/// Begins the time that the thread's next review judges.
void begin_spell(ThreadState& self, std::uint64_t cpu_ns) {
  self.review_samples = self.samples;
  self.memory.review_samples = self.memory.samples;
  self.review_cpu_ns = cpu_ns;
  self.review_handlers_ns = self.slot->handler_samples_ns.load(std::memory_order_relaxed);
  self.review_switches = self.charged.switches;
}

/// Changes a drawn thread that has lived long enough to stand for itself alone to the clock that others have.
void stand_alone(ThreadState& self, std::uint64_t cpu_ns) {
  self.one_in = 1;
  self.period_ns = runtime().config.period_ns;
  change<PerfTaskClock, PosixTimer>(self, ClockKind::posix);
  if (self.clock == ClockKind::perf) {  // there is no timer for it
    set_period(self, self.period_ns);
  }
  self.next_review = self.samples + first_review;
  begin_spell(self, cpu_ns);
  publish(self);
}

}  // namespace

void start_clock(ThreadState& self) {
  const profile::SessionConfig& config = runtime().config;
  stop_clock(self);  // of an earlier thread with the same number, or before a failed exec
  self.period_ns = config.period_ns;
  self.one_in = 1;
  self.next_review = first_review;
  if (the_lives.brief(tick_ns())) {
    watch_unit().expect(self);
  }
  begin_presence(self);
  self.review_switches = self.charged.switches;
  self.review_cpu_ns = thread_cpu_ns();
  self.clock = open_first(self, config);
  if (self.clock == ClockKind::automatic) {
    no_clock();
  }
  publish(self);
  if (!observing()) {  // somebody has stopped all clocks meanwhile
    stop_clock(self);
  }
}

void note_life(std::uint64_t cpu_ns, std::uint64_t switches) { the_lives.ended(cpu_ns, switches); }

void note_handler(std::uint64_t took_ns) {
  constexpr std::uint64_t memory = 16;  // samples
  const std::uint64_t mean = mean_handler_ns.load(std::memory_order_relaxed);
  mean_handler_ns.store(mean - mean / memory + took_ns / memory, std::memory_order_relaxed);
}

void forget_lives() { the_lives.clear(); }

void forgo_perf_clock(ThreadState& thread) {
  if (thread.clock == ClockKind::perf) {
    PerfTaskClock::close(thread);
    thread.clock =
        PosixTimer::open(thread, thread.period_ns, thread.period_ns) ? ClockKind::posix : ClockKind::automatic;
    publish(thread);
  }
}

void forgo_posix_clock(ThreadState& thread) {
  const profile::SessionConfig& config = runtime().config;
  if (thread.clock == ClockKind::posix) {
    PosixTimer::close(thread);
    const bool may_perf = config.clock != ClockKind::posix && config.perf_allowed != 0;
    thread.clock = may_perf && PerfTaskClock::open(thread, thread.period_ns, thread.period_ns) ? ClockKind::perf
                                                                                               : ClockKind::automatic;
    publish(thread);
  }
}

void stop_clock(ThreadState& self) {
  PosixTimer::close(self);
  PerfTaskClock::close(self);
}

namespace {

// Decides from an average over reviews, because switches come in bursts: following each would keep events open just
// when the next one comes.
void review_events(ThreadState& self, std::uint64_t switches, std::uint64_t cpu_ns) {
  constexpr std::uint64_t memory = 8;  // reviews
  const profile::SessionConfig& config = runtime().config;
  self.recent_switches += switches - self.recent_switches / memory;
  self.recent_cpu_ns += cpu_ns - self.recent_cpu_ns / memory;
  self.keeps_events = !cross_process_state().budget.rests.ever() &&
                      worth_keeping(self.recent_switches, self.recent_cpu_ns, config.budget, config.presence_cost_ns,
                                    self.keeps_events);
}

/// Opens or closes a thread's memory events. Each costs a context switch at least as much as a clock of perf. A thread
/// that switches too often for that is sampled by its clock alone. Events are opened at a thread's first review: a
/// shorter thread has none.
void review_memory_events(ThreadState& self, const Spell& spell) {
  constexpr double share = 0.5;  // of the part that the clock may take
  constexpr double fewer = 4;    // than those for which they were closed
  const profile::SessionConfig& config = runtime().config;
  if (!MemoryEvents::wanted()) {
    return;
  }
  const double cost = spell.switches * config.switch_cost_ns * runtime().memory.events / spell.cpu_ns;
  const double allowed = config.budget * clock_share * share;
  if (MemoryEvents::is_open(self)) {
    if (cost > allowed) {
      MemoryEvents::close(self);
      note_refusal(self, profile::MemoryRefusal::switches);
    }
  } else if (cost > allowed) {
    note_refusal(self, profile::MemoryRefusal::switches);
  } else if (MemoryEvents::allowed() && (!self.memory.refused || cost < allowed / fewer)) {
    MemoryEvents::open(self);
  }
}

}  // namespace

void review_clock(ThreadState& self, std::uint64_t cpu_ns) {
  if (self.one_in > 1) {
    if (cpu_ns >= self.alone_from_ns) {
      stand_alone(self, cpu_ns);
    }
    return;
  }
  if (self.samples < self.next_review) {
    return;
  }
  self.next_review = self.samples + review_samples;
  charge_presence(self);
  const std::uint64_t switches = self.charged.switches;
  const std::uint64_t handlers = self.slot->handler_samples_ns.load(std::memory_order_relaxed);
  const Spell spell{
      static_cast<double>(cpu_ns - self.review_cpu_ns) + 1, static_cast<double>(handlers - self.review_handlers_ns),
      static_cast<double>(switches - self.review_switches), static_cast<double>(self.samples - self.review_samples),
      static_cast<double>(self.memory.samples - self.memory.review_samples)};
  adapt(self, spell);
  review_memory_events(self, spell);
  review_events(self, switches - self.review_switches, cpu_ns - self.review_cpu_ns + 1);
  publish(self);
  begin_spell(self, cpu_ns);
}

}  // namespace crosstalk::in_target
