// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/observer.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "collectors/observer/identity.h"
#include "collectors/observer/kernel_events.h"
#include "collectors/observer/session.h"

namespace crosstalk::observer {

namespace {

std::string count_of(std::uint64_t number, const std::string& one, const std::string& many) {
  return std::to_string(number) + " " + (number == 1 ? one : many);
}

/// Returns the part of the CPU time that was not observed, "12 %"; empty: none, or too little to be certain.
std::string unobserved_part(const CpuTimes& times) {
  constexpr std::uint64_t least_ns = 50'000'000;
  constexpr std::uint64_t all = 100;
  const std::uint64_t percent =
      times.unobserved_ns * all / std::max<std::uint64_t>(1, times.observed_ns + times.unobserved_ns);
  return times.unobserved_ns < least_ns || percent == 0 ? "" : std::to_string(percent) + " %";
}

}  // namespace

Result<std::unique_ptr<Observer>> Observer::attach(const Assignment& assignment, const std::string& arena) {
  Result<ArenaAccess> access = ArenaAccess::open(arena);
  if (!access) {
    return tl::unexpected<Error>(access.error());
  }
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  UniqueFd ended(::eventfd(0, EFD_CLOEXEC));
  if (!stop.valid() || !ended.valid()) {
    return fail(ErrorCode::system, std::string("cannot make an event descriptor: ") + std::strerror(errno));
  }
  raise_descriptor_limit();
  auto session = std::make_unique<Session>(std::move(*access), assignment.registers,
                                           Selection{assignment.children, assignment.owner, assignment.pids.empty()},
                                           assignment.memory, assignment.counters);
  Result<void> begun = session->begin(assignment.pids);
  for (std::size_t i = 0; begun && i < assignment.pidfds.size(); ++i) {
    begun = check_pidfd(assignment.pids.at(i), assignment.pidfds[i]);
  }
  if (!begun) {
    return tl::unexpected<Error>(begun.error());
  }
  return std::unique_ptr<Observer>(
      new Observer(std::move(session), std::move(stop), std::move(ended), assignment.pids.empty()));
}

Observer::Observer(std::unique_ptr<Session> session, UniqueFd stop, UniqueFd ended, bool expects_more)
    : session_(std::move(session)),
      stop_(std::move(stop)),
      ended_(std::move(ended)),
      expects_more_(expects_more),
      thread_([this] { run(); }) {}

Result<void> Observer::take(pid_t pid) {
  const std::lock_guard held(mutex_);
  return handled_until_ns() == UINT64_MAX ? fail(ErrorCode::refused, "the recording ends") : session_->take(pid);
}

Observer::~Observer() { stop(); }

void Observer::run() {
  pollfd stop{stop_.get(), POLLIN, 0};
  std::unique_lock held(mutex_);
  while (::poll(&stop, 1, 0) <= 0 && (expects_more_.load(std::memory_order_relaxed) || !session_->over())) {
    handled_until_ns_.store(session_->pass(), std::memory_order_release);
    session_->wait(stop_.get(), held);
  }
  session_->end();
  handled_until_ns_.store(UINT64_MAX, std::memory_order_release);
  (void)::eventfd_write(ended_.get(), 1);
}

void Observer::stop() {
  if (thread_.joinable()) {
    (void)::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
}

CpuTimes Observer::cpu_times() {
  const std::lock_guard held(mutex_);
  return session_->cpu_times();
}

std::vector<profile::MessageRow> Observer::take_remarks() {
  const std::lock_guard held(mutex_);
  const Unwatched missing = session_->unwatched();
  std::vector<profile::MessageRow> remarks;
  const auto say = [&](std::uint64_t count, const char* code, const std::string& text) {
    if (count != 0) {
      remarks.push_back({code, text, count});
    }
  };
  say(missing.brief_threads, "brief_threads_missed",
      count_of(missing.brief_threads, "thread", "threads") + " had ended before they could be watched from outside");
  say(missing.brief_processes, "brief_processes_missed",
      count_of(missing.brief_processes, "process", "processes") +
          " had ended before they could be watched from outside");
  if (const std::string part = unobserved_part(session_->cpu_times()); !part.empty()) {
    say(1, "cpu_time_unobserved",
        "threads that came and went before they were met, or soon after they had been looked at, used " + part +
            " of the processes' CPU time: the profile has nothing of it");
  }
  say(missing.refused_threads, "threads_not_watched",
      count_of(missing.refused_threads, "thread", "threads") +
          " could not be watched from outside: " + missing.thread_refusal);
  say(missing.refused_processes, "processes_not_watched",
      count_of(missing.refused_processes, "process", "processes") +
          " could not be watched from outside: " + missing.process_refusal);
  say(missing.traced_processes, "traced",
      count_of(missing.traced_processes, "process was", "processes were") + " traced, by " + missing.tracer +
          ": debug registers are left to a tracer, so who shares lines was not seen as long as it was there");
  say(missing.rested ? 1 : 0, "starts_perhaps_missed",
      "threads that switch very often were watched for a part of the time: brief threads and processes that they "
      "started in between are not in the profile");
  const UnknownWaits& unknown = session_->unknown_waits();
  say(unknown.threads, "waits_unknown",
      "the waits of " + count_of(unknown.threads, "thread", "threads") + " are not known: " + unknown.why);
  const std::vector<profile::MessageRow> measured = remarks_on(session_->measured());
  remarks.insert(remarks.end(), measured.begin(), measured.end());
  const std::vector<profile::MessageRow> counted = remarks_on(session_->counted());
  remarks.insert(remarks.end(), counted.begin(), counted.end());
  session_->forget_told();
  return remarks;
}

std::vector<PassedOver> Observer::take_refused() {
  const std::lock_guard held(mutex_);
  return session_->take_refused();
}

}  // namespace crosstalk::observer
