// SPDX-License-Identifier: Apache-2.0
#include "daemon/target.h"

#include <algorithm>

namespace crosstalk::daemon {

std::optional<pid_t> Target::launched() const {
  const auto* const child = std::get_if<Child>(&target_);
  return child != nullptr ? std::optional(child->pid()) : std::nullopt;
}

int Target::fd() const {
  return ended() ? -1 : std::visit([](const auto& target) { return target.fd(); }, target_);
}

bool Target::just_ended(std::uint64_t now_ns) {
  if (ended()) {
    return false;
  }
  if (auto* const child = std::get_if<Child>(&target_)) {
    status_ = child->poll_status();
    ended_ = status_.has_value();
  } else {
    ended_ = std::get<AttachedProcesses>(target_).poll_end(now_ns);
  }
  ended_ns_ = ended_ ? now_ns : 0;
  return ended_;
}

std::optional<int> Target::take_stop() {
  auto* const child = std::get_if<Child>(&target_);
  return child != nullptr ? child->take_stop() : std::nullopt;
}

std::optional<int> Target::death_signal() const {
  const auto* const child = std::get_if<Child>(&target_);
  return child != nullptr ? child->death_signal() : std::nullopt;
}

void Target::send(const SignalWatch::Arrival& arrival) {
  if (auto* const child = std::get_if<Child>(&target_)) {
    child->send(arrival);
  } else {
    std::get<AttachedProcesses>(target_).tell(arrival.signal);
  }
}

void Target::leave() {
  if (auto* const attached = std::get_if<AttachedProcesses>(&target_)) {
    attached->leave();
  }
}

Result<void> Target::take(pid_t pid) { return std::get<AttachedProcesses>(target_).take(pid); }

void Target::expect_no_more() {
  if (auto* const attached = std::get_if<AttachedProcesses>(&target_)) {
    attached->expect_no_more();
  }
}

std::vector<profile::MessageRow> Target::take_remarks() {
  auto* const attached = std::get_if<AttachedProcesses>(&target_);
  return attached != nullptr ? attached->take_remarks() : std::vector<profile::MessageRow>();
}

std::vector<profile::ProcessRow> Target::take_unobserved() {
  auto* const attached = std::get_if<AttachedProcesses>(&target_);
  return attached != nullptr ? attached->take_unobserved() : std::vector<profile::ProcessRow>();
}

std::optional<std::uint64_t> Target::unobserved_cpu_ns() const {
  const auto* const attached = std::get_if<AttachedProcesses>(&target_);
  return attached != nullptr ? attached->unobserved_cpu_ns() : std::nullopt;
}

std::uint64_t Target::handled_until_ns() const {
  const auto* const attached = std::get_if<AttachedProcesses>(&target_);
  return attached != nullptr ? attached->handled_until_ns() : UINT64_MAX;
}

bool all_ended(const Targets& targets) {
  return std::all_of(targets.begin(), targets.end(), [](const Target& target) { return target.ended(); });
}

std::uint64_t last_end_ns(const Targets& targets) {
  std::uint64_t last = 0;
  for (const Target& target : targets) {
    last = std::max(last, target.ended_ns());
  }
  return last;
}

}  // namespace crosstalk::daemon
