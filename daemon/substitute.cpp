// SPDX-License-Identifier: Apache-2.0
#include "daemon/substitute.h"

#include <signal.h>

#include <utility>

#include "daemon/thread_names.h"

namespace crosstalk::daemon {

bool Substitute::watch(UnobservedProgram& program, const std::string& arena, std::uint64_t now_ns, Targets& targets) {
  if (!options_->substitute.attach) {
    program.unwatched = options_->no_substitute;
    return false;
  }
  Result<void> taken;
  if (executable_of(program.pid) == program.program) {
    taken = take(program.pid, arena, now_ns, targets);
  } else if (::kill(program.pid, 0) == 0) {
    return false;  // the exec is not over
  } else {
    taken = fail(ErrorCode::not_found, "it has ended");
  }
  if (!taken) {
    program.unwatched = taken.error().code == ErrorCode::not_found
                            ? "it had ended before it could be watched from outside"
                            : "it could not be watched from outside: " + taken.error().message;
  }
  return taken.has_value();
}

Result<void> Substitute::take(pid_t pid, const std::string& arena, std::uint64_t now_ns, Targets& targets) {
  if (!place_) {
    Result<AttachedProcesses> attached = AttachedProcesses::attach(options_->substitute, arena, now_ns);
    if (!attached) {
      return tl::unexpected<Error>(attached.error());
    }
    place_ = targets.size();
    targets.emplace_back(std::move(*attached));
  }
  return targets[*place_].take(pid);
}

void Substitute::expect_no_more(Targets& targets) const {
  if (place_) {
    targets[*place_].expect_no_more();
  }
}

}  // namespace crosstalk::daemon
