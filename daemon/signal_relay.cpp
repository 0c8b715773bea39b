// SPDX-License-Identifier: Apache-2.0
#include "daemon/signal_relay.h"

#include <unistd.h>

#include <algorithm>

namespace crosstalk::daemon {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;
// Longest time to send a signal to a group's processes one by one.
constexpr std::uint64_t patience_ns = 50 * ns_per_ms;
// An arrival at the witness longer ago was another signal.
constexpr std::uint64_t longest_delay_ns = 1000 * ns_per_ms;

bool is_of_terminal(int signal) { return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP; }

/// True if the kernel sent the signal only to the session's leader, as for a terminal's hang-up.
bool is_to_leader(const SignalWatch::Arrival& arrival) { return arrival.signal == SIGHUP && ::getsid(0) == ::getpid(); }

bool is_of_kernel(const SignalWatch::Arrival& arrival) { return arrival.code == SI_KERNEL; }

/// True for calls that signal a single process.
bool is_to_one_process(const SignalWatch::Arrival& arrival) {
  return arrival.code == SI_QUEUE || arrival.code == SI_TKILL;
}

}  // namespace

bool is_own(const SignalWatch::Arrival& arrival) {
  const bool of_clock = arrival.signal == SIGALRM || arrival.signal == SIGVTALRM || arrival.signal == SIGPROF ||
                        arrival.signal == SIGXCPU;
  return arrival.code == SI_TIMER || arrival.code == SI_MESGQ || arrival.code == SI_ASYNCIO ||
         (is_of_kernel(arrival) && of_clock);
}

bool SignalRelay::reached_group(const Undecided& undecided, const std::optional<WitnessedTimes>& witnessed) const {
  const Arrival& arrival = undecided.arrival;
  if (is_to_one_process(arrival)) {
    return false;
  }
  if (!witnessed) {
    return is_of_kernel(arrival) && is_of_terminal(arrival.signal) && !is_to_leader(arrival);
  }
  const auto number = static_cast<std::size_t>(arrival.signal);
  const std::uint64_t seen_ns = (*witnessed)[number];
  // An arrival that is already matched may stand for two that the kernel merged.
  return seen_ns + (seen_ns > witnessed_[number] ? longest_delay_ns : patience_ns) > undecided.arrived_ns;
}

std::vector<SignalWatch::Arrival> SignalRelay::to_be_sent(const std::vector<Arrival>& arrived, std::uint64_t now_ns) {
  for (const Arrival& arrival : arrived) {
    if (!is_own(arrival)) {
      const bool may_be_one_of_many = arrival.code == SI_USER && witness_.has_value();
      const std::uint64_t due_ns = may_be_one_of_many ? now_ns + patience_ns : now_ns;
      undecided_.push_back({arrival, now_ns, undecided_.empty() ? due_ns : std::max(due_ns, undecided_.back().due_ns)});
    }
  }
  if (undecided_.empty()) {
    return {};
  }
  const std::optional<WitnessedTimes> witnessed = witness_ ? witness_->ask() : std::nullopt;
  std::erase_if(undecided_, [&](const Undecided& undecided) { return reached_group(undecided, witnessed); });
  witnessed_ = witnessed.value_or(witnessed_);
  std::vector<Arrival> due;
  std::erase_if(undecided_, [&](const Undecided& undecided) {
    if (undecided.due_ns > now_ns) {
      return false;
    }
    due.push_back(undecided.arrival);
    return true;
  });
  return due;
}

void SignalRelay::decide_now() {
  for (Undecided& undecided : undecided_) {
    undecided.due_ns = 0;
  }
}

std::optional<int> SignalRelay::due_in_ms(std::uint64_t now_ns) const {
  if (undecided_.empty()) {
    return std::nullopt;
  }
  const std::uint64_t due_ns = undecided_.front().due_ns;
  const std::uint64_t left_ns = due_ns - std::min(due_ns, now_ns);
  return static_cast<int>(left_ns / ns_per_ms) + 1;
}

}  // namespace crosstalk::daemon
