// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
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
constexpr double sample_guess = 3;                     // a sample's cost, in times of its cost to its thread
constexpr std::uint64_t first_review_ns = 50'000'000;  // soon: the threads may be such that switch all the time

WatchSettings settings_of(const profile::SessionConfig& config, std::uint32_t registers) {
  return {std::min(registers, config.watchpoints), config.horizon_ns, config.trap_cost_ns, config.stacks_per_s};
}

}  // namespace

Session::Session(ArenaAccess arena, std::uint32_t registers, const Selection& selection, const MemoryEvents& memory,
                 CounterGroups counters)
    : thread_events_(those_of(memory, false)),
      processor_events_(those_of(memory, true)),
      counters_(std::move(counters)),
      random_(random_state(arena.header().config.seed != 0 ? arena.header().config.seed : monotonic_ns(), 0)),
      targets_(std::move(arena), selection, thread_events_),
      finder_(make_zeroed<in_target::AccessFinder>()),
      watches_(*this, budget_, settings_of(targets_.arena().config, registers)),
      sampling_(targets_, *finder_, budget_, watches_),
      waits_(targets_.arena().config, random_state(random_, 1), monotonic_ns()),
      pace_(targets_.arena().config.period_ns, of_samples * share_for_samples(0) * targets_.arena().config.budget,
            sample_guess * targets_.arena().config.perf_sample_cost_ns),
      turns_(targets_.arena().config.budget),
      begin_ns_(monotonic_ns()),
      review_due_ns_(begin_ns_ + first_review_ns),
      reviewed_ns_(begin_ns_) {
  measured_.watchdog = !memory.empty() && collectors::watchdog_competes(memory.front().source);
  budget_.clear();
  budget_.start(targets_.arena().config.budget);
}

Result<void> Session::begin(const std::vector<pid_t>& pids) {
  Result<void> begun = targets_.begin(pids);
  if (begun && !processor_events_.empty()) {
    begin_on_processors();
  }
  begin_with_rests();
  return begun;
}

/// Opens all or none: samples of some processors alone would be an unknown part.
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

/// Returns how many records were lost: records after malformed bytes cannot be parsed.
std::uint64_t Session::parse(const std::shared_ptr<std::vector<std::byte>>& bytes, const SampleLayout& layout,
                             pid_t tid, MemorySampler* sampler) {
  std::uint64_t time_ns = 0;  // of the latest record: records without a time come right after it
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
    ++spell_.ticks;
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
    part(*thread, arrival.time_ns);
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

void Session::part(WatchedThread& thread, std::uint64_t exit_ns) {
  close_events(thread);
  watches_.leave(thread);
  WaitSampler::leave(thread);
  thread.process->part(thread, exit_ns);
}

/// The process's threads are parted with next.
void Session::let_go(const Target& process) {
  for (const auto& thread : process.threads()) {
    close_events(*thread);
    watches_.leave(*thread);
    WaitSampler::leave(*thread);
  }
}

/// The new program is checked before anything of it is read, and once more when its events are open: from then on,
/// another exec is reported.
void Session::begin_anew(Target& process) {
  let_go(process);
  process.part_all();
  if (targets_.leave_if_stranger(process)) {
    return;
  }
  process.begin_anew();
  leave_if_stranger(process);
}

void Session::leave_if_stranger(Target& process) {
  if (!process.is_left() && targets_.is_stranger(process)) {
    let_go(process);
    (void)targets_.leave_if_stranger(process);
  }
}

/// The observer's own CPU time since this was called last.
std::uint64_t Session::spend_own() {
  const std::uint64_t own_ns = cpu_ns();
  const std::uint64_t more_ns = own_ns - std::exchange(spent_cpu_ns_, own_ns);
  budget_.spend(more_ns);
  return more_ns;
}

std::uint64_t Session::pass() {
  const std::uint64_t ticks = spell_.ticks;
  const auto looking_ns = [this] { return watches_.own_ns() + sampling_.probing_ns(); };
  const std::uint64_t looking_before_ns = looking_ns();
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
  const std::uint64_t own_ns = spend_own();
  const auto apart_ns = static_cast<double>(own_ns - std::min(own_ns, looking_ns() - looking_before_ns));
  (spell_.ticks != ticks ? spell_.cost_ns : upkeep_ns_) += apart_ns;
  take_turns(monotonic_ns());
  look_at_brief(monotonic_ns());
  waits_.look(targets_, monotonic_ns());
  targets_.retire();
  tend(monotonic_ns());
  upkeep_ns_ += static_cast<double>(spend_own());
  return before_ns;
}

void Session::expect_end(const Target& process, std::uint64_t now_ns) {
  for (const auto& thread : process.threads()) {
    arrivals_.push_back({now_ns, thread->tid, PerfExit{process.pid(), thread->tid, now_ns}, nullptr});
  }
}

void Session::wait(int stop, std::unique_lock<std::mutex>& held) {
  const std::uint64_t now = monotonic_ns();
  std::uint64_t until = std::min(now + (arrivals_.empty() ? idle_ns : settling_ns), waits_.due_ns());
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
  held.unlock();
  const int ready = ::ppoll(polled.data(), polled.size(), &timeout, nullptr);
  held.lock();
  if (ready <= 0) {
    return;
  }
  for (std::size_t i = 1; i < polled.size(); ++i) {
    notice(awaited[i], static_cast<unsigned>(polled[i].revents));
  }
}

/// Handles an awaited event. The last records of a thread that is gone are in its ring, but perhaps not that of its
/// end.
void Session::notice(const Awaited& awaited, unsigned events) {
  const std::uint64_t now_ns = monotonic_ns();
  if (awaited.process == nullptr) {
    return;  // samples of memory events: their rings are read in any case
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

void Session::forget_told() {
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      WaitSampler::leave(*thread);
    }
  }
  targets_.forget_told();
  waits_.forget_told();
  rested_ = false;
  told_counted_ = counters_.tally();
  measured_ = measured_.of_what_lasts();
}

void Session::end() {
  collect();
  for (const Arrival& arrival : std::exchange(arrivals_, {})) {
    handle(arrival);
  }
  watches_.close_all();
  waits_.look_at_last(targets_);
  for (const auto& process : targets_.processes()) {
    for (const auto& thread : process->threads()) {
      close_events(*thread);
      WaitSampler::leave(*thread);
    }
  }
  for (MemorySampler& sampler : processors_) {
    measured_.without_counter += sampler.account(measured_) ? 1 : 0;
  }
  targets_.part_all();
}

}  // namespace crosstalk::observer
