// SPDX-License-Identifier: Apache-2.0
#include "daemon/unobserved_programs.h"

#include <algorithm>
#include <span>
#include <utility>

#include "daemon/record_checks.h"

namespace crosstalk::daemon {
namespace {

using profile::NoticeState;
using profile::Unobserved;

constexpr std::size_t most_pending = 4096;
constexpr std::size_t most_named = 32;

bool possible(const UnobservedProgram& program) {
  return program.reason >= Unobserved::statically_linked && program.reason <= Unobserved::out_of_reach;
}

std::string why(const UnobservedProgram& program) {
  const std::string detail = program.detail.empty() ? "" : " (" + program.detail + ")";
  switch (program.reason) {
    case Unobserved::statically_linked:
      return "it is statically linked";
    case Unobserved::other_class:
      return "it is a 32-bit program";
    case Unobserved::other_machine:
      return "it is for another processor";
    case Unobserved::other_loader:
      return "it is of another C library" + detail;
    case Unobserved::sanitizer:
      return "it is built with a sanitizer" + detail;
    case Unobserved::privileged:
      return "it is set-user-ID, set-group-ID or has file capabilities";
    case Unobserved::pid_namespace:
      return "it runs in a pid namespace of its own";
    case Unobserved::out_of_reach:
      return "it cannot reach the recorder: it is in another user namespace, or has no /proc";
  }
  return {};
}

std::string remedy_of(Unobserved reason) {
  switch (reason) {
    case Unobserved::statically_linked:
      return "link it dynamically to observe it";
    case Unobserved::sanitizer:
      return "build it without -fsanitize to observe it";
    case Unobserved::pid_namespace:
    case Unobserved::out_of_reach:
      return "record inside of it";
    default:
      return {};
  }
}

}  // namespace

std::string reason_of(const UnobservedProgram& program) {
  const std::string remedy = remedy_of(program.reason);
  return why(program) + (program.unwatched.empty() ? "" : ", and " + program.unwatched) +
         (remedy.empty() ? "" : "; " + remedy);
}

bool is_watchable(const UnobservedProgram& program) {
  return program.pid != 0 && program.unwatched.empty() && program.reason != Unobserved::other_class &&
         program.reason != Unobserved::other_machine;
}

std::vector<UnobservedProgram> take_notices(profile::ArenaHeader& header) {
  std::vector<UnobservedProgram> taken;
  for (profile::UnobservedNotice& notice : header.notices) {
    if (notice.state.load(std::memory_order_acquire) != static_cast<std::uint32_t>(NoticeState::ready)) {
      continue;
    }
    UnobservedProgram program;
    program.reason = notice.reason;
    program.pid = notice.pid;
    program.withdrawn = notice.withdrawn != 0;
    program.time_ns = notice.time_ns;
    program.detail = one_line(text_of(std::span<const char>(notice.detail)));
    program.program = one_line(text_of(std::span<const char>(notice.program)));
    notice.state.store(static_cast<std::uint32_t>(NoticeState::free), std::memory_order_release);
    if (possible(program)) {
      taken.push_back(std::move(program));
    }
  }
  // An exec's failure may precede the notice that it withdraws.
  std::stable_sort(taken.begin(), taken.end(),
                   [](const UnobservedProgram& a, const UnobservedProgram& b) { return a.time_ns < b.time_ns; });
  return taken;
}

std::string describe(const UnobservedProgram& program) {
  return (program.program.empty() ? "a program" : program.program) + " was not observed: " + reason_of(program);
}

std::string describe_watched(const UnobservedProgram& program) {
  return program.program + " was watched from outside, because " + why(program) +
         ": its heap blocks are not known, nor how often it waits for locks";
}

void UnobservedPrograms::take(UnobservedProgram program) {
  if (program.withdrawn) {
    const auto told = std::find_if(pending_.rbegin(), pending_.rend(), [&](const UnobservedProgram& before) {
      return before.pid == program.pid && before.program == program.program && before.time_ns <= program.time_ns;
    });
    if (told != pending_.rend()) {
      pending_.erase(std::next(told).base());
    }
    return;
  }
  if (pending_.size() >= most_pending) {
    put(pending_.front());
    pending_.erase(pending_.begin());
  }
  pending_.push_back(std::move(program));
}

void UnobservedPrograms::offer(const std::function<bool(UnobservedProgram& program)>& watch) {
  std::erase_if(pending_, [&](UnobservedProgram& program) { return is_watchable(program) && watch(program); });
}

void UnobservedPrograms::settle(std::uint64_t before_ns) {
  std::erase_if(pending_, [&](const UnobservedProgram& program) {
    if (program.time_ns >= before_ns) {
      return false;
    }
    put(program);
    return true;
  });
}

void UnobservedPrograms::put(const UnobservedProgram& program) {
  settled_(program);
  std::string text = describe(program);
  if (!named_.contains(text)) {
    if (named_.size() < most_named) {
      named_.insert(text);
    } else {
      UnobservedProgram other = program;
      other.program = "another program";
      other.detail.clear();
      text = describe(other);
    }
  }
  sink_->put(profile::MessageRow{"program_not_observed", std::move(text), 1});
}

}  // namespace crosstalk::daemon
