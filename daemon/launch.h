// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/exec_hold.h"
#include "daemon/signals.h"

namespace crosstalk::daemon {

/// Returns the file that a shell would execute for `command` (searches PATH unless it has a slash). Errors: not_found,
/// not_executable.
[[nodiscard]] Result<std::string> find_command(const std::string& command);

/// Returns the command's environment: ours, with LD_PRELOAD beginning with `collector`, and the arena's name. Fails if
/// the dynamic loader would split the collector's path.
[[nodiscard]] Result<std::vector<std::string>> command_environment(const std::string& collector,
                                                                   const std::string& arena_path);

/// Returns our environment without additions, for a command that is watched from outside.
[[nodiscard]] std::vector<std::string> plain_environment();

/// Replaces this process by the file, as a shell would. Returns the error if that fails.
[[nodiscard]] Error execute(const std::string& file, const std::vector<std::string>& argv,
                            const std::vector<std::string>& environment);

enum class Begin {
  at_once,
  held,  // after its exec, if the kernel allows it
};

/// Forwards a signal that arrived here to another process, with its value.
void pass_on(pid_t pid, const SignalWatch::Arrival& arrival);

/// The launched command.
class Child {
 public:
  /// Executes `file` with `argv` and `environment`, in this process group and with the signal state from before
  /// `signals`. Variables that end in PID and name the calling process name the child there. Returns once the exec has
  /// succeeded or failed.
  [[nodiscard]] static Result<Child> start(const std::string& file, const std::vector<std::string>& argv,
                                           std::vector<std::string> environment, const SignalWatch& signals,
                                           Begin begin = Begin::at_once);
  [[nodiscard]] bool held() const { return hold_.has_value(); }
  /// Releases the child if it is held.
  void release() { hold_.reset(); }
  /// Kills and reaps the child, if it cannot be observed after all.
  void kill();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Readable once it has ended; -1 if the kernel has no pidfd.
  [[nodiscard]] int fd() const { return pidfd_.get(); }
  /// Returns its exit status once it has ended (128+N for signal N), and reaps it.
  [[nodiscard]] std::optional<int> poll_status();
  /// Returns the signal that has stopped it since the last call. poll_status() updates it.
  [[nodiscard]] std::optional<int> take_stop() { return std::exchange(stopped_by_, std::nullopt); }
  /// Returns the signal that killed it, if any.
  [[nodiscard]] std::optional<int> death_signal() const { return death_signal_; }
  /// Sends a signal unless it has been reaped.
  void send(int signal) const;
  /// Forwards a signal that arrived here, with its value.
  void send(const SignalWatch::Arrival& arrival) const;

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<ExecHold> hold_;
  std::optional<int> status_;
  std::optional<int> death_signal_;
  std::optional<int> stopped_by_;
};

}  // namespace crosstalk::daemon
