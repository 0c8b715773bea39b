// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/identity.h"

#include <poll.h>

#include <optional>
#include <string>

#include "base/number.h"
#include "base/proc_fields.h"
#include "base/process_owner.h"

namespace crosstalk::observer {

Result<void> check_owner(pid_t pid, uid_t owner) {
  const std::optional<uid_t> user = process_owner(pid);
  if (!user) {
    return fail(ErrorCode::not_found, "it has ended");
  }
  if (*user == owner) {
    return {};
  }
  return fail(ErrorCode::permission, "it belongs to user " + std::to_string(*user) + " and not to user " +
                                         std::to_string(owner) + " (--owner)");
}

Result<void> check_pidfd(pid_t pid, int pidfd) {
  const std::string facts = file_text("/proc/self/fdinfo/" + std::to_string(pidfd));
  const auto of = leading_number<pid_t>(proc_field(facts, "Pid").value_or(""));
  if (!of) {
    return fail(ErrorCode::refused, "--pidfd: descriptor " + std::to_string(pidfd) + " is no pidfd");
  }
  pollfd ended{pidfd, POLLIN, 0};
  if (::poll(&ended, 1, 0) != 0) {
    return fail(ErrorCode::refused, "process " + std::to_string(pid) + " has ended meanwhile");
  }
  if (*of != pid) {
    return fail(ErrorCode::refused, "--pidfd: descriptor " + std::to_string(pidfd) + " is of process " +
                                        std::to_string(*of) + " and not of process " + std::to_string(pid));
  }
  return {};
}

}  // namespace crosstalk::observer
