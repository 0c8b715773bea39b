// SPDX-License-Identifier: Apache-2.0
#include "daemon/attached_processes.h"

#include <poll.h>
#include <signal.h>

#include <utility>

namespace crosstalk::daemon {

Result<AttachedProcesses> AttachedProcesses::attach(const Attachment& attachment, const std::string& arena,
                                                    std::uint64_t now_ns) {
  AttachedProcesses processes;
  auto collector = attachment.attach(arena);
  if (!collector) {
    return tl::unexpected<Error>(collector.error());
  }
  processes.collector_ = std::move(*collector);
  processes.end_ns_ = attachment.duration_ns != 0 ? now_ns + attachment.duration_ns : UINT64_MAX;
  return processes;
}

bool AttachedProcesses::poll_end(std::uint64_t now_ns) {
  pollfd ended{fd(), POLLIN, 0};
  if (!told_ && now_ns < end_ns_ && ::poll(&ended, 1, 0) <= 0) {
    return false;
  }
  collector_->stop();
  return true;
}

void AttachedProcesses::tell(int signal) {
  told_ = told_ || signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace crosstalk::daemon
