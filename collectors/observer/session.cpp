// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <iterator>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/random.h"
#include "collectors/observer/sample_view.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
// The kernel takes a record's time before others can see the record.
constexpr std::uint64_t settling_ns = 30'000;
constexpr std::uint64_t idle_ns = 20'000'000;
constexpr std::uint64_t longest_period_ns = 64'000'000;
constexpr double cycle_ns = 400e6;  // of a thread that rests for a part of it
constexpr double least_part = 1 / 64.0;
constexpr double switch_share = 0.4;                    // of the budget
constexpr std::uint64_t first_review_ns = 200'000'000;  // soon: the threads may be such that switch all the time

WatchSettings settings_of(const profile::SessionConfig& config, std::uint32_t registers) {
  return {std::min(registers, config.watchpoints), config.horizon_ns, config.trap_cost_ns, config.stacks_per_s};
}

}  // namespace

Session::Session(ArenaAccess arena, std::uint32_t registers, bool children, const MemoryEvents& memory,
                 CounterGroups counters)
    : thread_events_(those_of(memory, false)),
      processor_events_(those_of(memory, true)),
      counters_(std::move(counters)),
      random_(random_state(arena.header().config.seed != 0 ? arena.header().config.seed : monotonic_ns(), 0)),
      targets_(std::move(arena), children, thread_events_),
      finder_(std::make_unique<in_target::AccessFinder>()),
      watches_(*this, budget_, settings_of(targets_.arena().config, registers)),
      sampling_(targets_, *finder_, budget_, watches_),
      review_due_ns_(monotonic_ns() + first_review_ns) {
  measured_.watchdog = !memory.empty() && collectors::watchdog_competes(memory.front().source);
  budget_.clear();
  budget_.start(targets_.arena().config.budget);
}

Result<void> Session::begin(const std::vector<pid_t>& pids) {
  Result<void> begun = targets_.begin(pids);
  if (begun && !processor_events_.empty()) {
    begin_on_processors();
  }
  return begun;
}

/// Where one of them can not be had, none is: samples of some processors alone would be a part that nobody knows.
void Session::begin_on_processors() {
  const long count = ::sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < count; ++cpu) {
    Result<MemorySampler> sampler =
        MemorySampler::open(processor_events_, {SamplingPlace::any_thread, cpu}, {}, random_);
    if (sampler) {
      processors_.push_back(std::move(*sampler));
    } else if (sampler.error().code != ErrorCode::not_found) {  // else it is offline
      measured_.refusal = sampler.error().message;
      processors_.clear();
      return;
    }
  }
  for (MemorySampler& sampler : processors_) {
    sampler.enable();
  }
}

std::optional<OpenEvent> Session::prepare(const WatchedThread& thread, const WatchedPlace& place) {
  if (thread.traced || thread.process->tracing().is_traced(monotonic_ns())) {
    return std::nullopt;
  }
  if (thread.rests() && !rouse(*targets_.thread_of(thread.tid), monotonic_ns())) {
    return std::nullopt;
  }
  return open_breakpoint(thread.tid, place, thread.clock);
}

void Session::enable(const OpenEvent& breakpoint, std::uint32_t shots) { enable_breakpoint(breakpoint, shots); }

std::uint64_t Session::now_ns() { return monotonic_ns(); }

std::uint64_t Session::cpu_ns() { return thread_cpu_ns(); }

std::uint32_t Session::new_watch() { return targets_.arena().next_watch.fetch_add(1, std::memory_order_relaxed) + 1; }

bool Session::was_store(const WatchedThread& thread, const PerfSample& trap) {
  const auto access = SampleView(trap, thread.process->memory(), thread.process->maps()).find_retired(*finder_);
  return access && stores(access->kind);
}

/// Returns how many records were lost: what comes after bytes that are none can not be told.
std::uint64_t Session::parse(const std::shared_ptr<std::vector<std::byte>>& bytes, const SampleLayout& layout,
                             pid_t tid, MemorySampler* sampler) {
  std::uint64_t time_ns = 0;  // of the latest record: those without a time come right after it
  for (std::span<const std::byte> rest(*bytes); !rest.empty();) {
    const auto parsed = parse_perf_record(rest, layout);
    if (!parsed) {
      return 1;
    }
    rest = rest.subspan(parsed->bytes);
    Arrival arrival{time_ns, tid, parsed->record, bytes};
    if (const auto* sample = std::get_if<PerfSample>(&parsed->record)) {
      arrival.time_ns = sample->time_ns;
      arrival.event = sampler != nullptr ? sampler->weigh(*sample, arrival.weight) : nullptr;
      arrival.tid = sampler != nullptr ? sample->tid : tid;
    } else if (const auto* fork = std::get_if<PerfFork>(&parsed->record)) {
      arrival.time_ns = fork->time_ns;
    } else if (const auto* exit = std::get_if<PerfExit>(&parsed->record)) {
      arrival.time_ns = exit->time_ns;
    }
    time_ns = arrival.time_ns;
    if (!std::holds_alternative<std::monostate>(parsed->record)) {
      arrivals_.push_back(std::move(arrival));
    }
  }
  return 0;
}

void Session::collect(WatchedThread& thread) {
  if (thread.rests()) {
    return;
  }
  auto bytes = std::make_shared<std::vector<std::byte>>();
  const std::uint64_t given_up = thread.events->drain(*bytes) ? 0 : 1;
  const std::uint64_t lost = parse(bytes, {}, thread.tid, nullptr) + given_up;
  if (lost != 0) {
    thread.records->slot().lost_records.fetch_add(lost, std::memory_order_relaxed);
  }
  if (thread.memory) {
    collect(*thread.memory, thread.tid);
  }
}

void Session::collect(ModuleSampler& sampler, pid_t tid) {
  const ModuleSampler::Batch batch = sampler.drain();
  for (const ModuleSampler::Sampled& sampled : batch.samples) {
    arrivals_.push_back({sampled.sample.time_ns, tid, sampled.sample, batch.bytes, &sampler.event(), sampled.weight});
  }
  measured_.lost += batch.lost;
}

/// `tid` 0: of all threads of a processor.
void Session::collect(MemorySampler& sampler, pid_t tid) {
  if (ModuleSampler* const module = sampler.module()) {
    collect(*module, tid);
  }
  for (MemorySampler::Ring& ring : sampler.rings()) {
    auto bytes = std::make_shared<std::vector<std::byte>>();
    const std::uint64_t given_up = ring.ring.drain(*bytes) ? 0 : 1;
    measured_.lost += parse(bytes, ring.layout, tid, &sampler) + given_up;
  }
}

void Session::collect() {
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      collect(*thread);
    }
  }
  for (MemorySampler& sampler : processors_) {
    collect(sampler, 0);
  }
  std::stable_sort(arrivals_.begin(), arrivals_.end(),
                   [](const Arrival& a, const Arrival& b) { return a.time_ns < b.time_ns; });
}

void Session::handle(WatchedThread& thread, const Arrival& arrival, const PerfSample& sample) {
  if (arrival.event != nullptr) {
    measured_.count(sampling_.take(thread, sample, *arrival.event, arrival.weight));
  } else if (sample.event == thread.clock.id) {
    sampling_.take(thread, sample);
  } else {
    watches_.trapped(thread, sample);
  }
}

void Session::handle(const Arrival& arrival) {
  if (const auto* throttle = std::get_if<PerfThrottle>(&arrival.record)) {
    measured_.throttled += throttle->begins ? 1 : 0;
    return;
  }
  WatchedThread* const thread = targets_.thread_of(arrival.tid);
  const auto* lost = std::get_if<PerfLost>(&arrival.record);
  if (thread == nullptr) {  // it has been parted with, or was none of those that are watched
    measured_.of_others += arrival.event != nullptr ? 1 : 0;
    measured_.lost += lost != nullptr ? lost->records : 0;
    return;
  }
  if (const auto* sample = std::get_if<PerfSample>(&arrival.record)) {
    handle(*thread, arrival, *sample);
  } else if (const auto* fork = std::get_if<PerfFork>(&arrival.record)) {
    targets_.meet(fork->pid, fork->tid, fork->parent_pid);
  } else if (std::holds_alternative<PerfExit>(arrival.record)) {
    part(*thread);
  } else if (std::holds_alternative<PerfExec>(arrival.record)) {
    begin_anew(*thread->process);
  } else if (lost != nullptr) {
    thread->records->slot().lost_records.fetch_add(lost->records, std::memory_order_relaxed);
  } else if (std::holds_alternative<PerfMap>(arrival.record)) {
    thread->process->expect_new_maps();
  }
}

/// Before its memory events are closed, at its end or for a rest: a thread is counted once.
void Session::account_memory(WatchedThread& thread) {
  if (thread.memory && thread.memory->account(measured_) && !std::exchange(thread.lacked_counter, true)) {
    ++measured_.without_counter;
  }
}

/// They have told all that they will.
void Session::close_events(WatchedThread& thread) {
  counters_.close(thread, targets_.arena().config.perf_sample_cost_ns);
  account_memory(thread);
}

void Session::part(WatchedThread& thread) {
  close_events(thread);
  watches_.leave(thread);
  thread.process->part(thread, true);
}

void Session::begin_anew(Target& process) {
  for (const auto& thread : process.threads()) {
    close_events(*thread);
    watches_.leave(*thread);
  }
  process.begin_anew();
}

void Session::pass() {
  const std::uint64_t before_ns = monotonic_ns() - settling_ns;
  collect();
  const auto later = std::find_if(arrivals_.begin(), arrivals_.end(),
                                  [before_ns](const Arrival& arrival) { return arrival.time_ns > before_ns; });
  const std::vector<Arrival> due(std::make_move_iterator(arrivals_.begin()), std::make_move_iterator(later));
  arrivals_.erase(arrivals_.begin(), later);
  for (const Arrival& arrival : due) {
    handle(arrival);
  }
  watches_.settle(before_ns);
  take_turns(monotonic_ns());
  targets_.retire();
  tend(monotonic_ns());
  const std::uint64_t own_ns = cpu_ns();
  budget_.spend(own_ns - spent_cpu_ns_);
  spent_cpu_ns_ = own_ns;
}

void Session::tend(std::uint64_t now_ns) {
  for (const auto& process : targets_.processes()) {
    process->tend(now_ns);
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

bool Session::rouse(WatchedThread& thread, std::uint64_t now_ns) {
  thread.turn_ns = now_ns + static_cast<std::uint64_t>(thread.part * cycle_ns);
  thread.process->expect_new_maps();  // nobody has told what was mapped meanwhile
  return Target::rouse(thread);
}

/// A thread that switches very often goes to rest, and ends to.
void Session::take_turn(WatchedThread& thread, std::uint64_t now_ns) {
  if (thread.part >= 1 && !thread.rests()) {
    return;
  }
  if (thread.rests() && now_ns >= thread.turn_ns) {
    (void)rouse(thread, now_ns);  // one that is gone is found out about at the next review
  } else if (!thread.rests() && now_ns >= thread.turn_ns && !watches_.involves(thread)) {
    collect(thread);
    account_memory(thread);
    Target::rest(thread);
    rested_ = true;
    const double by_chance = 0.5 + static_cast<double>(next_random(thread.random) >> 11U) * 0x1p-53;  // mean 1
    thread.turn_ns = now_ns + static_cast<std::uint64_t>((1 - thread.part) * cycle_ns * by_chance);
  }
}

void Session::take_turns(std::uint64_t now_ns) {
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      take_turn(*thread, now_ns);
    }
  }
}

/// Watches keep a thread from rest, so what its samples stand for follows from how long it had a clock.
void Session::set_part(WatchedThread& thread, double part, double ran_ns) {
  const std::uint64_t clocked_ns = thread.cpu_before_ns + (thread.rests() ? 0 : read_clock(thread.clock));
  const auto recently_ns = static_cast<double>(clocked_ns - std::exchange(thread.clocked_ns, clocked_ns));
  if (part == 1) {
    thread.scale = 1;
  } else if (thread.part == 1 || recently_ns == 0) {
    thread.scale = 1 / part;
  } else {
    thread.scale = std::clamp(ran_ns / recently_ns, 1.0, 1 / least_part);
  }
  thread.part = part;
}

/// What its clock adds to the thread's context switches, and so for what part of the time it can have one.
void Session::review_thread(WatchedThread& thread) {
  const pid_t pid = thread.process->pid();
  const auto facts = thread_facts(pid, thread.tid);
  if (!facts) {
    arrivals_.push_back({monotonic_ns(), thread.tid, PerfExit{pid, thread.tid, 0}, nullptr});
    return;
  }
  const profile::SessionConfig& config = targets_.arena().config;
  // A clock that ticks seldom costs less at a switch; the price was measured at 4 ms.
  const double price =
      config.switch_cost_ns * std::sqrt(4e6 / std::max(static_cast<double>(targets_.period_ns()), 4e6));
  const std::uint64_t all = facts->switches - std::min(thread.switches_before, facts->switches);
  const auto switches = static_cast<double>(all - std::min(thread.switches_charged, all));
  const std::uint64_t cpu_ns = facts->cpu_ns - std::min(thread.life_before_ns, facts->cpu_ns);
  const auto ran_ns = static_cast<double>(cpu_ns - std::min(thread.ran_ns, cpu_ns));
  thread.switches_charged = all;
  thread.traced = facts->tracer != 0;
  thread.process->tracing().note(facts->tracer);
  thread.ran_ns = cpu_ns;
  const auto cost_ns = static_cast<std::uint64_t>(switches * price * thread.part);
  profile::ThreadSlot& slot = thread.records->slot();
  slot.switches.store(all, std::memory_order_relaxed);
  slot.switches_ns.fetch_add(cost_ns, std::memory_order_relaxed);
  slot.cpu_ns.store(std::max(cpu_ns, thread.cpu_ns), std::memory_order_relaxed);
  budget_.spend(cost_ns);
  constexpr double least_ns = 1e6;  // less says nothing
  if (ran_ns >= least_ns) {
    const double affordable = switch_share * config.budget * ran_ns / (switches * price + 1);
    set_part(thread, affordable >= 1 ? 1 : std::max(affordable, least_part), ran_ns);
  }
}

/// Once a second: threads that nobody told of, and whether the clocks leave enough of the budget for watches.
void Session::review(std::uint64_t now_ns) {
  targets_.meet_all();
  const std::size_t threads = targets_.thread_count();
  review_due_ns_ = now_ns + std::max<std::uint64_t>(second, threads * 10'000'000);
  constexpr double clock_share = 0.5;  // of the budget
  constexpr double little_share = 0.15;
  const profile::SessionConfig& config = targets_.arena().config;
  std::uint64_t samples = counters_.tally().readings;
  std::uint64_t cpu = 0;
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      review_thread(*thread);
      samples += thread->samples;
      cpu += std::max(thread->ran_ns, thread->cpu_ns);
    }
  }
  const std::uint64_t own = cpu_ns() - watches_.own_ns();
  const double spent =
      static_cast<double>(samples - std::min(samples, reviewed_.samples)) * config.perf_sample_cost_ns +
      static_cast<double>(own - std::min(own, reviewed_.own_ns));
  const double allowed = static_cast<double>(cpu - std::min(cpu, reviewed_.cpu_ns)) * config.budget;
  reviewed_ = {samples, cpu, own};
  constexpr double least_ns = 1e6;  // of a budget: less says nothing
  if (allowed < least_ns) {
    return;
  }
  if (spent > clock_share * allowed) {
    const auto times = static_cast<std::uint64_t>(std::clamp(spent / (clock_share * allowed), 2.0, 16.0));
    targets_.set_period(std::min(targets_.period_ns() * times, longest_period_ns));
  } else if (spent < little_share * allowed && targets_.period_ns() > config.period_ns) {
    targets_.set_period(std::max(targets_.period_ns() / 2, config.period_ns));
  }
}

void Session::expect_end(const Target& process, std::uint64_t now_ns) {
  for (const auto& thread : process.threads()) {
    arrivals_.push_back({now_ns, thread->tid, PerfExit{process.pid(), thread->tid, now_ns}, nullptr});
  }
}

void Session::wait(int stop) {
  const std::uint64_t now = monotonic_ns();
  std::uint64_t until = now + (arrivals_.empty() ? idle_ns : settling_ns);
  if (const std::uint64_t end_ns = watches_.next_end_ns(); end_ns != UINT64_MAX) {
    until = std::min(until, end_ns + settling_ns);
  }
  std::vector<pollfd> polled{{stop, POLLIN, 0}};
  std::vector<Awaited> awaited{{}};
  for (const auto& process : targets_.processes()) {
    polled.push_back({process->pidfd(), POLLIN, 0});
    awaited.push_back({process.get(), 0});
    for (const auto& thread : process->threads()) {
      until = std::min(until, thread->part < 1 ? std::max(thread->turn_ns, now) : until);
      if (!thread->gone && !thread->rests()) {
        polled.push_back({thread->clock.fd.get(), POLLIN, 0});
        awaited.push_back({process.get(), thread->tid});
        if (thread->memory) {
          for (const MemorySampler::Ring& ring : thread->memory->rings()) {
            polled.push_back({ring.fd, POLLIN, 0});
            awaited.push_back({});
          }
          if (const ModuleSampler* const module = thread->memory->module()) {
            polled.push_back({module->fd(), POLLIN, 0});
            awaited.push_back({});
          }
        }
      }
    }
  }
  for (MemorySampler& sampler : processors_) {
    for (const MemorySampler::Ring& ring : sampler.rings()) {
      polled.push_back({ring.fd, POLLIN, 0});
      awaited.push_back({});
    }
  }
  const std::uint64_t left = until > now ? until - now : 0;
  const timespec timeout{static_cast<time_t>(left / second), static_cast<long>(left % second)};
  if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) <= 0) {
    return;
  }
  for (std::size_t i = 1; i < polled.size(); ++i) {
    notice(awaited[i], static_cast<unsigned>(polled[i].revents));
  }
}

/// What was awaited has come. The last records of a thread that is gone are in its ring, but perhaps not that of its
/// end.
void Session::notice(const Awaited& awaited, unsigned events) {
  const std::uint64_t now_ns = monotonic_ns();
  if (awaited.process == nullptr) {
    return;  // samples of memory events: what is in their rings is read in any case
  }
  if (awaited.tid == 0 && (events & POLLIN) != 0) {
    expect_end(*awaited.process, now_ns);
  } else if (awaited.tid != 0 && (events & POLLHUP) != 0) {
    targets_.thread_of(awaited.tid)->gone = true;
    arrivals_.push_back({now_ns, awaited.tid, PerfExit{awaited.process->pid(), awaited.tid, now_ns}, nullptr});
  }
}

Unwatched Session::unwatched() const {
  Unwatched missing = targets_.unwatched();
  missing.rested = rested_;
  return missing;
}

MeasuredSamples Session::measured() const {
  MeasuredSamples measured = measured_;
  const Unwatched missing = targets_.unwatched();
  measured.clock_alone = missing.unmeasured_threads;
  measured.refusal = missing.unmeasured_threads != 0 ? missing.why_unmeasured : measured.refusal;
  return measured;
}

void Session::end() {
  collect();
  for (const Arrival& arrival : std::exchange(arrivals_, {})) {
    handle(arrival);
  }
  watches_.close_all();
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      close_events(*thread);
    }
  }
  for (MemorySampler& sampler : processors_) {
    measured_.without_counter += sampler.account(measured_) ? 1 : 0;
  }
  targets_.part_all();
}

}  // namespace crosstalk::observer
