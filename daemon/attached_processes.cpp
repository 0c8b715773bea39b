// SPDX-License-Identifier: Apache-2.0
#include "daemon/attached_processes.h"

#include <poll.h>
#include <signal.h>

#include <utility>

namespace crosstalk::daemon {

Result<AttachedProcesses> AttachedProcesses::attach(Attachment attachment, const std::string& arena,
                                                    std::uint64_t now_ns) {
  const std::uint64_t delay_ns = attachment.delay_ns;
  AttachedProcesses processes(std::move(attachment), arena, now_ns + delay_ns);
  if (delay_ns == 0) {
    if (Result<void> begun = processes.begin(); !begun) {
      return tl::unexpected<Error>(begun.error());
    }
  }
  return processes;
}

Result<void> AttachedProcesses::begin() {
  auto collector = attachment_.attach(arena_);
  if (!collector) {
    return tl::unexpected<Error>(collector.error());
  }
  collector_ = std::move(*collector);
  return {};
}

bool AttachedProcesses::is_over(std::uint64_t now_ns) {
  if (collector_ == nullptr) {
    if (told_ || now_ns < begin_ns_) {
      return told_;
    }
    if (Result<void> begun = begin(); !begun) {
      refusal_ = begun.error().message;
      return true;
    }
    return false;
  }
  if (end_ns_ == 0) {  // attaching may have taken seconds
    end_ns_ = attachment_.duration_ns != 0 ? now_ns + attachment_.duration_ns : UINT64_MAX;
  }
  pollfd ended{fd(), POLLIN, 0};
  if (!told_ && now_ns < end_ns_ && ::poll(&ended, 1, 0) <= 0) {
    return false;
  }
  collector_->stop();
  return true;
}

std::vector<profile::MessageRow> AttachedProcesses::take_remarks() {
  if (collector_ != nullptr) {
    return collector_->take_remarks();
  }
  if (!over_) {
    return {};
  }
  return {{"not_watched", refusal_.empty() ? "the recording ended before the delay was over" : refusal_, 1}};
}

void AttachedProcesses::tell(int signal) {
  told_ = told_ || signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace crosstalk::daemon
