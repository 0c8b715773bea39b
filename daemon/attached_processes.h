// SPDX-License-Identifier: Apache-2.0
// The running processes that a session has attached to, and their outside collector.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// A collector in the recorder's process that writes into the arena in the threads' place. It reports their ends itself
/// (SlotState::ended).
class OutsideCollector {
 public:
  OutsideCollector() = default;
  OutsideCollector(const OutsideCollector&) = delete;
  OutsideCollector& operator=(const OutsideCollector&) = delete;
  virtual ~OutsideCollector() = default;

  /// Readable once everything that it observes has ended.
  [[nodiscard]] virtual int ended_fd() const = 0;
  /// Begins to observe one more process; not_found: it has ended.
  [[nodiscard]] virtual Result<void> take(pid_t /*pid*/) {
    return fail(ErrorCode::unsupported, "it takes no process later");
  }
  /// Says that no other processes follow: it then ends with the last one.
  virtual void expect_no_more() {}
  /// Detaches from the targets. On return, all data is in the arena. A second call does nothing.
  virtual void stop() = 0;
  /// Returns messages about the recording since the last call.
  [[nodiscard]] virtual std::vector<profile::MessageRow> take_remarks() = 0;
  /// Returns the processes that it failed to observe since the last call, with unobserved_because.
  [[nodiscard]] virtual std::vector<profile::ProcessRow> take_unobserved() { return {}; }
  /// Returns the CPU time so far of its processes that none of their observed threads has; nullopt: not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> unobserved_cpu_ns() { return std::nullopt; }
  /// All that happened before this time (CLOCK_MONOTONIC, ns) is in the arena.
  [[nodiscard]] virtual std::uint64_t handled_until_ns() const { return UINT64_MAX; }
};

/// How a session attaches to its targets.
struct Attachment {
  std::uint64_t delay_ns = 0;  // 0: at once
  std::uint64_t duration_ns =
      0;  // once attached; 0: until all processes have ended, or until the session is told to stop
  /// Attaches a collector that writes into the named arena.
  std::function<Result<std::unique_ptr<OutsideCollector>>(const std::string& arena)> attach;
};

/// Not thread-safe.
class AttachedProcesses {
 public:
  /// Fails if it cannot attach at once, unless the attachment has a delay.
  [[nodiscard]] static Result<AttachedProcesses> attach(Attachment attachment, const std::string& arena,
                                                        std::uint64_t now_ns);

  /// Readable once the processes have ended; -1 before they are attached to.
  [[nodiscard]] int fd() const { return collector_ != nullptr ? collector_->ended_fd() : -1; }
  /// Attaches when the delay is over. Returns true once the attachment is over and the collector has detached: the
  /// processes have ended, the time is up, or the session was told to stop.
  [[nodiscard]] bool poll_end(std::uint64_t now_ns) { return over_ = over_ || is_over(now_ns); }
  /// Handles a signal for the recorder: a signal that ends programs ends the attachment.
  void tell(int signal);
  void leave() { told_ = true; }
  [[nodiscard]] Result<void> take(pid_t pid) { return collector_->take(pid); }
  void expect_no_more() {
    if (collector_ != nullptr) {
      collector_->expect_no_more();
    }
  }
  /// Returns the collector's messages since the last call; once the attachment is over, why there was no collector.
  [[nodiscard]] std::vector<profile::MessageRow> take_remarks();
  [[nodiscard]] std::vector<profile::ProcessRow> take_unobserved() {
    return collector_ != nullptr ? collector_->take_unobserved() : std::vector<profile::ProcessRow>();
  }
  [[nodiscard]] std::optional<std::uint64_t> unobserved_cpu_ns() const {
    return collector_ != nullptr ? collector_->unobserved_cpu_ns() : std::nullopt;
  }
  [[nodiscard]] std::uint64_t handled_until_ns() const {
    return collector_ != nullptr ? collector_->handled_until_ns() : UINT64_MAX;
  }

 private:
  AttachedProcesses(Attachment attachment, std::string arena, std::uint64_t begin_ns)
      : attachment_(std::move(attachment)), arena_(std::move(arena)), begin_ns_(begin_ns) {}
  Result<void> begin();
  [[nodiscard]] bool is_over(std::uint64_t now_ns);

  Attachment attachment_;
  std::string arena_;
  std::unique_ptr<OutsideCollector> collector_;  // null: not attached yet, or attaching failed
  std::uint64_t begin_ns_;
  std::uint64_t end_ns_ = 0;  // 0: not known before the first poll of what is attached to
  bool told_ = false, over_ = false;
  std::string refusal_;  // why it could not attach later
};

}  // namespace crosstalk::daemon
