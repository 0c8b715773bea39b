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

/// The file that a shell would execute for `command` (by PATH unless it has a slash). Errors: not_found,
/// not_executable.
[[nodiscard]] Result<std::string> find_command(const std::string& command);

/// The environment of the command: ours, with LD_PRELOAD beginning with `collector` and the arena's name.
/// Refused when the dynamic loader could not take the collector's path apart.
[[nodiscard]] Result<std::vector<std::string>> command_environment(const std::string& collector,
                                                                   const std::string& arena_path);

/// The environment of a command that is not to know of us: ours.
[[nodiscard]] std::vector<std::string> plain_environment();

/// Executes it in the place of this process, as a shell would. Returns why it could not.
[[nodiscard]] Error execute(const std::string& file, const std::vector<std::string>& argv,
                            const std::vector<std::string>& environment);

enum class Begin {
  at_once,
  held,  // behind its exec, where the kernel allows that
};

/// Sends a signal that has arrived here on to another process, with the value that it came with.
void pass_on(pid_t pid, const SignalWatch::Arrival& arrival);

/// The launched command.
class Child {
 public:
  /// Executes `file` with `argv` and `environment`, in this process group and with the signal state from
  /// before `signals`. Variables that end in PID and name the calling process name the child there. Returns when it has
  /// become the program, or with why it could not.
  [[nodiscard]] static Result<Child> start(const std::string& file, const std::vector<std::string>& argv,
                                           std::vector<std::string> environment, const SignalWatch& signals,
                                           Begin begin = Begin::at_once);
  [[nodiscard]] bool held() const { return hold_.has_value(); }
  /// Lets it begin, if it was held.
  void release() { hold_.reset(); }
  /// Ends it, where it cannot be observed after all. It is reaped.
  void kill();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Readable once it has ended; -1 where the kernel has no pidfd.
  [[nodiscard]] int fd() const { return pidfd_.get(); }
  /// Its exit status, 128+N for signal N, once it has ended; it is then reaped.
  [[nodiscard]] std::optional<int> poll_status();
  /// The signal that has stopped it since the last call; nothing: none has. poll_status() finds out.
  [[nodiscard]] std::optional<int> take_stop() { return std::exchange(stopped_by_, std::nullopt); }
  /// The signal that it has died of, if it has.
  [[nodiscard]] std::optional<int> death_signal() const { return death_signal_; }
  /// Sends a signal, while it has not been reaped.
  void send(int signal) const;
  /// Sends it one that has arrived here, with the value that it came with.
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
