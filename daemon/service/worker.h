// SPDX-License-Identifier: Apache-2.0
// A process of `crosstalk` that the daemon has started: a recording, a live view's stream, or a report.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::service {

/// How a worker is started.
struct WorkerPlan {
  std::string program;                 // path of `crosstalk`
  std::vector<std::string> arguments;  // without the program's name
  std::vector<int> kept;               // the daemon's descriptors that it inherits, under the numbers kept_number(i)
  bool background = false;             // at the lowest priority
};

/// Returns the number that the i-th inherited descriptor has in the worker.
[[nodiscard]] constexpr int kept_number(std::size_t i) { return 3 + static_cast<int>(i); }

/// Owns the process, which leads a process group of its own: the destructor kills it. Its death is reported by fd(); if
/// the thread that started it dies, it ends as by ^C. A program that cannot be executed ends with status 127 and a line
/// on its standard error. Not thread-safe.
class Worker {
 public:
  [[nodiscard]] static Result<Worker> start(const WorkerPlan& plan);
  Worker(Worker&& other) noexcept;
  Worker& operator=(Worker&& other) noexcept;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Readable once it has ended.
  [[nodiscard]] int fd() const { return pidfd_.get(); }
  /// Descriptors that are readable when it has written or ended. Negative ones, which poll(2) ignores, are at their
  /// end.
  [[nodiscard]] std::vector<int> fds() const { return {pidfd_.get(), output_.get(), errors_.get()}; }
  /// Reads what waits of its standard output and error, at most `most` bytes; the rest stays.
  [[nodiscard]] std::string read_output(std::size_t most) { return read_waiting(output_, most); }
  [[nodiscard]] std::string read_errors(std::size_t most) { return read_waiting(errors_, most); }
  /// Their read ends, which do not block, for somebody else to read.
  [[nodiscard]] UniqueFd take_output() { return std::move(output_); }
  [[nodiscard]] UniqueFd take_errors() { return std::move(errors_); }

  /// Returns its exit status once it has ended (128+N for signal N), and reaps it.
  [[nodiscard]] std::optional<int> poll_status();
  /// Asks it to end, as ^C does. Kills it with its group if it still runs `patience_ns` after the first call: many
  /// recordings that end at once take long on few processors. `now_ns`: CLOCK_MONOTONIC.
  void stop(std::uint64_t now_ns, std::uint64_t patience_ns = 20'000'000'000);
  [[nodiscard]] bool stopping() const { return stopping_since_ns_ != 0; }

 private:
  Worker() = default;
  static std::string read_waiting(UniqueFd& pipe, std::size_t most);
  void kill() const;
  void end();

  pid_t pid_ = -1;
  UniqueFd pidfd_, output_, errors_;
  std::optional<int> status_;
  std::uint64_t stopping_since_ns_ = 0;  // 0: not told to end
};

}  // namespace crosstalk::service
