// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/session.h"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <utility>
#include <variant>

#include "collectors/observer/sample_view.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
// The kernel takes a record's time before others can see the record.
constexpr std::uint64_t settling_ns = 30'000;
constexpr std::uint64_t idle_ns = 20'000'000;
constexpr std::uint64_t maps_pause_ns = 200'000'000;
constexpr std::uint64_t longest_period_ns = 64'000'000;

WatchSettings settings_of(const profile::SessionConfig& config, std::uint32_t registers) {
  return {std::min(registers, config.watchpoints), config.horizon_ns, config.trap_cost_ns};
}

}  // namespace

Session::Session(pid_t pid, ArenaAccess arena, std::uint32_t registers)
    : target_(pid, std::move(arena)),
      finder_(std::make_unique<in_target::AccessFinder>()),
      board_(std::make_unique<watch_policy::Board>()),
      watches_(*this, target_.threads(), *board_, budget_, settings_of(target_.arena().config, registers)),
      sampling_(target_, *finder_, *board_, budget_, watches_) {
  budget_.clear();
  budget_.start(target_.arena().config.budget);
  board_->start(target_.arena().config.board_slots);
}

std::optional<OpenEvent> Session::prepare(const WatchedThread& thread, const WatchedPlace& place) {
  return open_breakpoint(thread.tid, place, thread.clock);
}

void Session::enable(const OpenEvent& breakpoint, std::uint32_t shots) { enable_breakpoint(breakpoint, shots); }

std::uint64_t Session::now_ns() { return monotonic_ns(); }

std::uint64_t Session::cpu_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * second + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint32_t Session::new_watch() { return target_.arena().next_watch.fetch_add(1, std::memory_order_relaxed) + 1; }

bool Session::was_store(const PerfSample& trap) {
  const auto access = SampleView(trap, target_.memory(), target_.maps()).find_retired(*finder_);
  return access && stores(access->kind);
}

WatchedThread* Session::thread_of(pid_t tid) const {
  const auto& threads = target_.threads();
  const auto found =
      std::find_if(threads.begin(), threads.end(), [tid](const auto& thread) { return thread->tid == tid; });
  return found == threads.end() ? nullptr : found->get();
}

void Session::collect(WatchedThread& thread) {
  auto bytes = std::make_shared<std::vector<std::byte>>();
  if (!thread.events.drain(*bytes)) {
    thread.records->slot().lost_records.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t time_ns = 0;  // of the latest record: those without a time come right after it
  for (std::span<const std::byte> rest(*bytes); !rest.empty();) {
    const auto parsed = parse_perf_record(rest);
    if (!parsed) {
      thread.records->slot().lost_records.fetch_add(1, std::memory_order_relaxed);
      break;
    }
    rest = rest.subspan(parsed->bytes);
    if (const auto* sample = std::get_if<PerfSample>(&parsed->record)) {
      time_ns = sample->time_ns;
    } else if (const auto* fork = std::get_if<PerfFork>(&parsed->record)) {
      time_ns = fork->time_ns;
    } else if (const auto* exit = std::get_if<PerfExit>(&parsed->record)) {
      time_ns = exit->time_ns;
    }
    if (!std::holds_alternative<std::monostate>(parsed->record)) {
      arrivals_.push_back({time_ns, thread.tid, parsed->record, bytes});
    }
  }
}

void Session::collect() {
  for (const auto& thread : target_.threads()) {
    collect(*thread);
  }
  std::stable_sort(arrivals_.begin(), arrivals_.end(),
                   [](const Arrival& a, const Arrival& b) { return a.time_ns < b.time_ns; });
}

void Session::handle(WatchedThread& thread, const PerfSample& sample) {
  if (sample.event == thread.clock.id) {
    sampling_.take(thread, sample);
  } else {
    watches_.trapped(thread, sample);
  }
}

void Session::handle(const Arrival& arrival) {
  WatchedThread* const thread = thread_of(arrival.tid);
  if (thread == nullptr) {
    return;  // it has been parted with
  }
  if (const auto* sample = std::get_if<PerfSample>(&arrival.record)) {
    handle(*thread, *sample);
  } else if (const auto* fork = std::get_if<PerfFork>(&arrival.record)) {
    if (fork->pid == target_.pid()) {
      (void)target_.meet(fork->tid);  // it may be gone by now, which is counted
    }
  } else if (std::holds_alternative<PerfExit>(arrival.record)) {
    part(*thread);
  } else if (std::holds_alternative<PerfExec>(arrival.record)) {
    begin_anew();
  } else if (const auto* lost = std::get_if<PerfLost>(&arrival.record)) {
    thread->records->slot().lost_records.fetch_add(lost->records, std::memory_order_relaxed);
  } else if (std::holds_alternative<PerfMap>(arrival.record)) {
    maps_changed_ = true;
  }
}

void Session::part(WatchedThread& thread) {
  watches_.leave(thread);
  target_.part(thread, true);
}

void Session::begin_anew() {
  watches_.close_all();
  target_.begin_anew();
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
  watches_.settle();
  tend(monotonic_ns());
  const std::uint64_t own_ns = cpu_ns();
  budget_.spend(own_ns - spent_cpu_ns_);
  spent_cpu_ns_ = own_ns;
}

void Session::tend(std::uint64_t now_ns) {
  if ((maps_changed_ || sampling_.maps_are_old()) && now_ns >= maps_due_ns_) {
    maps_due_ns_ = now_ns + maps_pause_ns;
    maps_changed_ = false;
    sampling_.maps_were_read();
    target_.read_maps();
  }
  if (now_ns >= review_due_ns_) {
    review(now_ns);
  }
}

/// What the clocks add to the threads' context switches since the last call.
double Session::charge_switches() {
  const profile::SessionConfig& config = target_.arena().config;
  // A clock that ticks seldom costs less at a switch; the price was measured at 4 ms.
  const double price =
      config.switch_cost_ns * std::sqrt(4e6 / static_cast<double>(std::max(target_.period_ns(), 4'000'000UL)));
  double all = 0;
  for (const auto& thread : target_.threads()) {
    const auto facts = thread_facts(target_.pid(), thread->tid);
    if (!facts) {
      continue;
    }
    const std::uint64_t switches = facts->switches - std::min(thread->switches_before, facts->switches);
    const double cost = static_cast<double>(switches - std::min(thread->switches_charged, switches)) * price;
    thread->switches_charged = switches;
    thread->records->slot().switches.store(switches, std::memory_order_relaxed);
    thread->records->slot().switches_ns.fetch_add(static_cast<std::uint64_t>(cost), std::memory_order_relaxed);
    all += cost;
  }
  budget_.spend(static_cast<std::uint64_t>(all));
  return all;
}

/// Once a second: threads that nobody told of, and whether the clocks leave enough of the budget for watches.
void Session::review(std::uint64_t now_ns) {
  target_.meet_all();
  const std::size_t threads = target_.threads().size();
  review_due_ns_ = now_ns + std::max<std::uint64_t>(second, threads * 10'000'000);
  constexpr double clock_share = 0.5;  // of the budget
  constexpr double little_share = 0.15;
  const profile::SessionConfig& config = target_.arena().config;
  std::uint64_t samples = 0;
  std::uint64_t cpu = 0;
  for (const auto& thread : target_.threads()) {
    samples += thread->samples;
    cpu += thread->cpu_ns;
  }
  const std::uint64_t own = cpu_ns() - watches_.own_ns();
  const double switches_ns = charge_switches();
  const double spent =
      switches_ns + static_cast<double>(samples - std::min(samples, reviewed_.samples)) * config.perf_sample_cost_ns +
      static_cast<double>(own - std::min(own, reviewed_.own_ns));
  const double allowed = static_cast<double>(cpu - std::min(cpu, reviewed_.cpu_ns)) * config.budget;
  reviewed_ = {samples, cpu, own};
  constexpr double least_ns = 1e6;  // of a budget: less says nothing
  if (allowed < least_ns) {
    return;
  }
  if (spent > clock_share * allowed && target_.period_ns() < longest_period_ns) {
    target_.set_period(std::min(target_.period_ns() * 2, longest_period_ns));
  } else if (spent < little_share * allowed && target_.period_ns() > config.period_ns) {
    target_.set_period(std::max(target_.period_ns() / 2, config.period_ns));
  }
}

void Session::wait(int stop) {
  const std::uint64_t now = monotonic_ns();
  std::uint64_t until = now + (arrivals_.empty() ? idle_ns : settling_ns);
  until = std::min(until, watches_.next_end_ns());
  const std::uint64_t left = until > now ? until - now : 0;
  const timespec timeout{static_cast<time_t>(left / second), static_cast<long>(left % second)};
  std::vector<pollfd> polled{{stop, POLLIN, 0}};
  std::vector<pid_t> tids;
  for (const auto& thread : target_.threads()) {
    polled.push_back({thread->clock.fd.get(), POLLIN, 0});
    tids.push_back(thread->tid);
  }
  if (::ppoll(polled.data(), polled.size(), &timeout, nullptr) <= 0) {
    return;
  }
  for (std::size_t i = 0; i < tids.size(); ++i) {
    if ((polled[i + 1].revents & POLLHUP) != 0) {  // its last records are in the ring, its exit among them
      arrivals_.push_back({now, tids[i], PerfExit{target_.pid(), tids[i], now}, nullptr});
    }
  }
}

void Session::end() {
  collect();
  for (const Arrival& arrival : std::exchange(arrivals_, {})) {
    handle(arrival);
  }
  watches_.close_all();
  if (const std::uint64_t missed = target_.missed(); missed != 0) {
    target_.message("brief_threads_missed",
                    std::to_string(missed) + " threads had ended before they could be watched from outside");
  }
  (void)charge_switches();
  target_.part_all();
}

}  // namespace crosstalk::observer
