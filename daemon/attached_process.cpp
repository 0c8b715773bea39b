// SPDX-License-Identifier: Apache-2.0
#include "daemon/attached_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace crosstalk::daemon {

Result<AttachedProcess> AttachedProcess::attach(const Attachment& attachment, const std::string& arena,
                                                std::uint64_t now_ns) {
  AttachedProcess process;
  process.pid_ = attachment.pid;
  process.pidfd_.reset(static_cast<int>(::syscall(SYS_pidfd_open, attachment.pid, 0)));
  if (!process.pidfd_.valid()) {
    return fail(ErrorCode::refused, "-p " + std::to_string(attachment.pid) + ": " + std::strerror(errno));
  }
  auto collector = attachment.attach(arena);
  if (!collector) {
    return tl::unexpected<Error>(collector.error());
  }
  process.collector_ = std::move(*collector);
  process.end_ns_ = attachment.duration_ns != 0 ? now_ns + attachment.duration_ns : UINT64_MAX;
  return process;
}

bool AttachedProcess::poll_end(std::uint64_t now_ns) {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  if (!told_ && now_ns < end_ns_ && ::poll(&ended, 1, 0) <= 0) {
    return false;
  }
  collector_->stop();
  return true;
}

void AttachedProcess::tell(int signal) {
  told_ = told_ || signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace crosstalk::daemon
