// SPDX-License-Identifier: Apache-2.0
// A running process that a session has attached to, and the collector outside of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::daemon {

/// A collector in the recorder's process that writes into the arena what the target's threads would have written. It
/// says itself when they end (SlotState::ended).
class OutsideCollector {
 public:
  OutsideCollector() = default;
  OutsideCollector(const OutsideCollector&) = delete;
  OutsideCollector& operator=(const OutsideCollector&) = delete;
  virtual ~OutsideCollector() = default;

  /// Leaves the target. What was seen of it is in the arena when this returns. A second call does nothing.
  virtual void stop() = 0;
};

/// What a session attaches to, and how.
struct Attachment {
  pid_t pid = 0;
  std::uint64_t duration_ns = 0;  // 0: until the process ends, or until the session is told to stop
  /// Attaches a collector that writes into the arena of that name.
  std::function<Result<std::unique_ptr<OutsideCollector>>(const std::string& arena)> attach;
};

/// Not thread-safe.
class AttachedProcess {
 public:
  [[nodiscard]] static Result<AttachedProcess> attach(const Attachment& attachment, const std::string& arena,
                                                      std::uint64_t now_ns);

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Readable once the process has ended.
  [[nodiscard]] int fd() const { return pidfd_.get(); }
  /// Is it over? The process has ended, the time is up, or it was told to. The collector has left by then.
  [[nodiscard]] bool poll_end(std::uint64_t now_ns);
  /// A signal for the recorder: those that end a program end the attachment.
  void tell(int signal);

 private:
  AttachedProcess() = default;

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::unique_ptr<OutsideCollector> collector_;
  std::uint64_t end_ns_ = UINT64_MAX;
  bool told_ = false;
};

}  // namespace crosstalk::daemon
