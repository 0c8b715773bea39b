// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/signals.h"

namespace crosstalk::driver::live {

/// `crosstalk record` as a child process, in a process group of its own: the terminal's signals do not reach it. It is
/// told to end if this process dies. Its standard input and output, and so a command's, are /dev/null. Not thread-safe.
class RecorderProcess {
 public:
  /// `arguments` follow `crosstalk`. It gets the signal state from before `signals`, and all descriptors that are not
  /// close-on-exec.
  [[nodiscard]] static Result<RecorderProcess> start(const std::vector<std::string>& arguments,
                                                     const daemon::SignalWatch& signals);
  RecorderProcess(RecorderProcess&& other) noexcept;
  RecorderProcess& operator=(RecorderProcess&&) = delete;
  RecorderProcess(const RecorderProcess&) = delete;
  RecorderProcess& operator=(const RecorderProcess&) = delete;
  /// Stops it.
  ~RecorderProcess() { stop(); }

  /// Readable once it has ended.
  [[nodiscard]] int fd() const { return pidfd_.get(); }
  /// Readable when it, or its command, has written to standard error.
  [[nodiscard]] int words_fd() const { return words_.get(); }
  /// Reads what was written. Of that, the last line of crosstalk's own is kept.
  void read_words();
  [[nodiscard]] const std::string& last_words() const { return last_words_; }  // without "crosstalk: "

  /// The exit status once it has ended, as in a shell.
  [[nodiscard]] std::optional<int> status();
  /// True if it has ended by a signal.
  [[nodiscard]] bool killed() { return status().value_or(0) > of_signals; }
  /// Tells it to end, and its command with it, and waits for that: for some seconds, then it is killed.
  void stop();

 private:
  static constexpr int of_signals = 128;  // in a shell's exit status, before the signal's number
  RecorderProcess() = default;

  pid_t pid_ = -1;
  UniqueFd pidfd_, words_;
  std::string line_, last_words_;
  std::optional<int> status_;
};

}  // namespace crosstalk::driver::live
