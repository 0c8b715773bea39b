// SPDX-License-Identifier: Apache-2.0
// Running processes that a session has attached to, and the collector outside of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
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
  /// Processes that it was to observe and could not, with unobserved_because. After stop().
  [[nodiscard]] virtual std::vector<profile::ProcessRow> unobserved() const { return {}; }
};

/// How a session attaches to what it is to observe.
struct Attachment {
  std::uint64_t delay_ns = 0;     // 0: at once
  std::uint64_t duration_ns = 0;  // 0: until all processes have ended, or until the session is told to stop
  /// Attaches a collector that writes into the arena of that name.
  std::function<Result<std::unique_ptr<OutsideCollector>>(const std::string& arena)> attach;
};

/// Not thread-safe.
class AttachedProcesses {
 public:
  /// Fails where it cannot be attached at once, unless that is to be later.
  [[nodiscard]] static Result<AttachedProcesses> attach(Attachment attachment, const std::string& arena,
                                                        std::uint64_t now_ns);

  /// Readable once they have ended; -1 as long as they are not attached to.
  [[nodiscard]] int fd() const { return collector_ != nullptr ? collector_->ended_fd() : -1; }
  /// Is it over? The processes have ended, the time is up, or it was told to. The collector has left by then. Attaches
  /// when it is time for that.
  [[nodiscard]] bool poll_end(std::uint64_t now_ns);
  /// A signal for the recorder: those that end a program end the attachment.
  void tell(int signal);
  void leave() { told_ = true; }
  /// The collector's, or why there was none; once it is over.
  [[nodiscard]] std::vector<profile::MessageRow> remarks() const;
  [[nodiscard]] std::vector<profile::ProcessRow> unobserved() const {
    return collector_ != nullptr ? collector_->unobserved() : std::vector<profile::ProcessRow>();
  }

 private:
  AttachedProcesses(Attachment attachment, std::string arena, std::uint64_t begin_ns)
      : attachment_(std::move(attachment)), arena_(std::move(arena)), begin_ns_(begin_ns) {}
  Result<void> begin(std::uint64_t now_ns);

  Attachment attachment_;
  std::string arena_;
  std::unique_ptr<OutsideCollector> collector_;  // null: not attached yet, or in vain
  std::uint64_t begin_ns_, end_ns_ = UINT64_MAX;
  bool told_ = false;
  std::string refusal_;  // why it could not be attached later
};

}  // namespace crosstalk::daemon
