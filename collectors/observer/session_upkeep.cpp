// SPDX-License-Identifier: Apache-2.0
// A session's upkeep, from time to time and without records: it reviews threads, and lets those that switch very often
// rest.
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/random.h"
#include "collectors/observer/session.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t usual_pause_ns = 1'000'000'000;
// Of budget_now():
constexpr double look_share = 0.1;  // for looks at brief and resting threads
constexpr double maps_share = 0.1;  // for reading doubtful mappings
constexpr double least_budget = 1e-3;
constexpr std::uint64_t next_review_ns = 200'000'000;
constexpr std::uint64_t least_telling_ns = 1'000'000;  // of a thread's CPU time
constexpr std::uint64_t least_past_ns = 5'000'000;     // of its past, in which it began

}  // namespace

/// The past of a thread tells how often it switches. On a busy machine any thread does, and sampling costs less than
/// the first guess, so only what says it clearly counts.
ClockWindows Session::windows_by_past(const WatchedThread& thread) const {
  const auto facts = thread_facts(thread.process->pid(), thread.tid);
  if (!facts || facts->cpu_ns < least_past_ns) {
    return {1, thread.period_ns};
  }
  const profile::SessionConfig& config = targets_.arena().config;
  const double rate = static_cast<double>(facts->switches) / static_cast<double>(facts->cpu_ns);
  constexpr double clearly = 0.5;
  const ClockWindows windows = clock_windows({pace_.sample_cost_ns(), static_cast<double>(config.switch_cost_ns), rate},
                                             targets_.period_ns(), share_for_samples(upkeep_) * config.budget);
  return windows.part < clearly ? windows : ClockWindows{1, thread.period_ns};
}

/// Threads that switch very often begin with a rest: until the first review, clocks would take most of their time.
void Session::begin_with_rests() {
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      const ClockWindows windows = windows_by_past(*thread);
      thread->part = windows.part;
      thread->period_ns = windows.period_ns;
    }
  }
  review_turns();
  const auto processors = static_cast<double>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  const double share =
      std::min(processors / static_cast<double>(std::max<std::size_t>(targets_.thread_count(), 1)), 1.0);
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      if (thread->part < 1) {
        Target::rest(*thread);
        rested_ = true;
        set_windows(*thread, {thread->part, thread->period_ns}, share, 1);
        thread->turn_ns = monotonic_ns() + static_cast<std::uint64_t>(turns_.cycle_ns() * uniform(thread->random));
      }
    }
  }
}

void Session::review_turns() {
  std::size_t resting = 0;
  for (const auto& process : targets_.processes()) {
    resting += static_cast<std::size_t>(
        std::ranges::count_if(process->threads(), [](const auto& thread) { return thread->part < 1; }));
  }
  turns_.review(resting, busy_);
}

/// The part of one processor that observing may take now: less than the budget if the threads use less than one.
double Session::budget_now() const { return std::max(targets_.arena().config.budget, least_budget) * busy_; }

void Session::tend(std::uint64_t now_ns) {
  const double allowed =
      maps_share * budget_now() / static_cast<double>(std::max<std::size_t>(targets_.processes().size(), 1));
  for (const auto& process : targets_.processes()) {
    process->tend(now_ns, allowed);
  }
  keep_pace(now_ns);
  counters_.tend(targets_, budget_, now_ns);
  if (now_ns >= review_due_ns_) {
    review(now_ns);
  }
}

void Session::keep_pace(std::uint64_t now_ns) {
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      if (thread->memory) {
        thread->memory->keep_pace(now_ns, targets_.period_ns(), thread->random);
        process->learn_periods(thread->memory->periods());
        measured_.counting_part = std::min(measured_.counting_part, thread->memory->counting_part());
      }
    }
  }
  for (MemorySampler& sampler : processors_) {
    sampler.keep_pace(now_ns, targets_.period_ns(), random_);
    measured_.counting_part = std::min(measured_.counting_part, sampler.counting_part());
  }
}

/// Tells the thread's CPU time so far, and returns it: the kernel has no more to say of a thread that has exited.
std::uint64_t Session::note_cpu_time(WatchedThread& thread) {
  const std::uint64_t cpu_ns = thread.recorded_ns(cpu_time_of(thread.process->pid(), thread.tid));
  std::atomic<std::uint64_t>& told = thread.records->slot().cpu_ns;
  told.store(std::max(cpu_ns, told.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  thread.note_uncounted(cpu_ns);
  return cpu_ns;
}

/// The kernel reports neither what a thread starts during its rest nor its end. It counts context switches, a clock
/// does not: of a thread that ends before its first review, nothing else would tell that time.
void Session::look_at_brief(std::uint64_t now_ns) {
  constexpr double least_pause_ns = 20e6;
  if (now_ns < look_due_ns_) {
    return;
  }
  const std::uint64_t before_ns = cpu_ns();
  for (const auto& process : targets_.processes()) {
    bool any = false;
    for (const auto& thread : process->threads()) {
      if (thread->rests() || now_ns - thread->begin_ns < usual_pause_ns) {
        note_cpu_time(*thread);
      }
      any = any || thread->rests();
    }
    if (any) {
      process->meet_all();
    }
  }
  const double affordable_ns = static_cast<double>(cpu_ns() - before_ns) / (look_share * budget_now());
  look_due_ns_ = now_ns + static_cast<std::uint64_t>(
                              std::clamp(affordable_ns, least_pause_ns, static_cast<double>(usual_pause_ns)));
}

/// An exec during the rest was not reported, so the process's user is checked as at the attachment.
bool Session::rouse(WatchedThread& thread, std::uint64_t now_ns) {
  if (targets_.is_stranger(*thread.process)) {
    return false;
  }
  thread.turn_ns = now_ns + static_cast<std::uint64_t>(thread.part * turns_.cycle_ns());
  thread.process->doubt_maps();  // mappings made meanwhile were not reported
  thread.share.begin_window(static_cast<double>(note_cpu_time(thread)));
  const bool roused = Target::rouse(thread);
  if (roused && targets_.is_stranger(*thread.process)) {
    Target::rest(thread);
    return false;
  }
  return roused;
}

/// Takes the last samples of the thread's clock, which is closed next.
void Session::take_last_samples(WatchedThread& thread) {
  collect(thread);
  for (Arrival& arrival : arrivals_) {
    const auto* sample = std::get_if<PerfSample>(&arrival.record);
    if (sample != nullptr && arrival.event == nullptr && arrival.tid == thread.tid &&
        sample->event == thread.clock.id) {
      handle(thread, arrival, *sample);
      arrival.record = std::monostate{};
    }
  }
  std::erase_if(arrivals_,
                [](const Arrival& arrival) { return std::holds_alternative<std::monostate>(arrival.record); });
}

/// A thread that switches very often goes to rest, or ends its rest: it is time to.
void Session::take_turn(WatchedThread& thread, std::uint64_t now_ns) {
  if (thread.rests()) {
    turns_.begin();
    if (!rouse(thread, now_ns) && !is_there(thread.process->pid(), thread.tid)) {
      expect_end_of(thread);
    }
  } else if (!watches_.involves(thread)) {
    take_last_samples(thread);
    if (watches_.involves(thread)) {
      return;
    }
    account_memory(thread);
    note_cpu_time(thread);
    const std::uint64_t before_ns = thread.cpu_before_ns;
    Target::rest(thread);
    thread.share.end_window(static_cast<double>(thread.cpu_before_ns - before_ns));
    rested_ = true;
    const double by_chance = 0.5 + uniform(thread.random);  // mean 1
    thread.turn_ns = now_ns + static_cast<std::uint64_t>((1 - thread.part) * turns_.cycle_ns() * by_chance);
  }
}

void Session::take_turns(std::uint64_t now_ns) {
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      if ((thread->part < 1 || thread->rests()) && now_ns >= thread->turn_ns) {
        const std::uint64_t before_ns = cpu_ns();
        take_turn(*thread, now_ns);
        turns_.charge(cpu_ns() - before_ns);
      }
    }
  }
}

/// The profile says what CPU time lies between two samples, rests included.
void Session::set_period(WatchedThread& thread, std::uint64_t period_ns) {
  Target::set_period(thread, period_ns);
  constexpr double ns_per_us = 1000;
  thread.records->slot().period_us.store(
      static_cast<std::uint32_t>(static_cast<double>(period_ns) / thread.part / ns_per_us), std::memory_order_relaxed);
}

void Session::set_windows(WatchedThread& thread, const ClockWindows& windows, double ran_ns, double passed_ns) {
  thread.part = windows.part;
  if (windows.part == 1) {
    thread.share.keep_clock();
  } else {
    thread.share.expect_windows(windows.part * turns_.cycle_ns() * std::min(ran_ns / passed_ns, 1.0));
  }
  set_period(thread, windows.period_ns);
}

void Session::expect_end_of(const WatchedThread& thread) {
  arrivals_.push_back({monotonic_ns(), thread.tid, PerfExit{thread.process->pid(), thread.tid, 0}, nullptr});
}

/// Finds the cost that its clock adds to the thread's context switches, and from it the part of the time in which the
/// thread can have a clock.
void Session::review_thread(WatchedThread& thread, double passed_ns) {
  const pid_t pid = thread.process->pid();
  const auto facts = thread_facts(pid, thread.tid);
  if (!facts) {
    expect_end_of(thread);
    return;
  }
  const profile::SessionConfig& config = targets_.arena().config;
  const std::uint64_t all = facts->switches - std::min(thread.switches_before, facts->switches);
  const auto switches = static_cast<double>(all - std::min(thread.switches_charged, all));
  const std::uint64_t cpu_ns = thread.recorded_ns(facts->cpu_ns);
  const auto ran_ns = static_cast<double>(cpu_ns - std::min(thread.ran_ns, cpu_ns));
  thread.switches_charged = all;
  thread.traced = facts->tracer != 0;
  thread.process->tracing().note(facts->tracer);
  thread.ran_ns = cpu_ns;
  ran_ns_ += ran_ns;
  thread.note_uncounted(cpu_ns);
  const auto cost_ns =
      static_cast<std::uint64_t>(switches * switch_price(config.switch_cost_ns, thread.period_ns) * thread.part);
  profile::ThreadSlot& slot = thread.records->slot();
  slot.switches.store(all, std::memory_order_relaxed);
  slot.switches_ns.fetch_add(cost_ns, std::memory_order_relaxed);
  slot.cpu_ns.store(std::max(cpu_ns, thread.cpu_ns), std::memory_order_relaxed);
  budget_.spend(cost_ns);
  if (ran_ns >= static_cast<double>(least_telling_ns)) {
    const ClockCosts cost{pace_.sample_cost_ns(), static_cast<double>(config.switch_cost_ns), switches / ran_ns};
    set_windows(thread, clock_windows(cost, targets_.period_ns(), share_for_samples(upkeep_) * config.budget), ran_ns,
                passed_ns);
  } else if (thread.part == 1) {
    set_period(thread, targets_.period_ns());
  }
}

/// Samples leave watches their part of the budget.
void Session::review_shares() {
  constexpr double of_latest = 0.3;
  const profile::SessionConfig& config = targets_.arena().config;
  const double budget_ns = config.budget * std::exchange(ran_ns_, 0);
  const double upkeep_ns = std::exchange(upkeep_ns_, 0);
  const bool watches = watches_.usable() || config.method == profile::Method::probe;
  if (!watches || budget_ns < static_cast<double>(least_telling_ns)) {
    return;
  }
  upkeep_ += of_latest * (upkeep_ns / budget_ns - upkeep_);
  pace_.allow(of_samples * share_for_samples(upkeep_) * config.budget);
}

/// Runs once a second, and more often at first: finds threads that were not reported, and sets how often threads are
/// sampled.
void Session::review(std::uint64_t now_ns) {
  for (const auto& process : targets_.processes()) {
    leave_if_stranger(*process);  // it may have another user than before, though no exec of it was reported
  }
  targets_.meet_all();
  const std::size_t threads = targets_.thread_count();
  const std::uint64_t pause_ns = reviewed_ns_ != begin_ns_ ? usual_pause_ns : next_review_ns;
  review_due_ns_ = now_ns + std::max<std::uint64_t>(pause_ns, threads * 10'000'000);
  const auto passed_ns = static_cast<double>(now_ns - std::exchange(reviewed_ns_, now_ns));
  const std::uint64_t samples = sampling_.samples() + counters_.tally().readings;
  const std::uint64_t more = samples - std::exchange(samples_, samples);
  spell_.cost_ns += static_cast<double>(more) * targets_.arena().config.perf_sample_cost_ns;
  targets_.set_period(pace_.review(std::exchange(spell_, {})));
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      review_thread(*thread, passed_ns);
    }
    process->count_cpu_times();
    process->forget_met();
  }
  constexpr double least_busy = 0.1;
  busy_ = std::clamp(ran_ns_ / passed_ns, least_busy, 1.0);
  review_shares();
  review_turns();
  waits_.review(targets_.cpu_times().observed_ns, now_ns);
}

}  // namespace crosstalk::observer
