// SPDX-License-Identifier: Apache-2.0
// Running processes that a session has attached to, and the collector outside of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// A collector in the recorder's process that writes into the arena what the target's threads would have written. It
/// says itself when they end (SlotState::ended).
class OutsideCollector {
 public:
  OutsideCollector() = default;
  OutsideCollector(const OutsideCollector&) = delete;
  OutsideCollector& operator=(const OutsideCollector&) = delete;
  virtual ~OutsideCollector() = default;

  /// Readable once all that it observes has ended.
  [[nodiscard]] virtual int ended_fd() const = 0;
  /// Leaves the targets. What was seen of them is in the arena when this returns. A second call does nothing.
  virtual void stop() = 0;
  /// What it has to say of what it saw, and did not see. After stop().
  [[nodiscard]] virtual std::vector<profile::MessageRow> remarks() const = 0;
};

/// How a session attaches to what it is to observe.
struct Attachment {
  std::uint64_t duration_ns = 0;  // 0: until all processes have ended, or until the session is told to stop
  /// Attaches a collector that writes into the arena of that name.
  std::function<Result<std::unique_ptr<OutsideCollector>>(const std::string& arena)> attach;
};

/// Not thread-safe.
class AttachedProcesses {
 public:
  [[nodiscard]] static Result<AttachedProcesses> attach(const Attachment& attachment, const std::string& arena,
                                                        std::uint64_t now_ns);

  /// Readable once they have ended.
  [[nodiscard]] int fd() const { return collector_->ended_fd(); }
  /// Is it over? The processes have ended, the time is up, or it was told to. The collector has left by then.
  [[nodiscard]] bool poll_end(std::uint64_t now_ns);
  /// A signal for the recorder: those that end a program end the attachment.
  void tell(int signal);
  /// The collector's, once it is over.
  [[nodiscard]] std::vector<profile::MessageRow> remarks() const { return collector_->remarks(); }

 private:
  AttachedProcesses() = default;

  std::unique_ptr<OutsideCollector> collector_;
  std::uint64_t end_ns_ = UINT64_MAX;
  bool told_ = false;
};

}  // namespace crosstalk::daemon
