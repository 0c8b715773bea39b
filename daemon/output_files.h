// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace crosstalk::daemon {

/// Remembers the file at the output's path, so that a session that fails to start leaves the path as it was.
class OutputFiles {
 public:
  /// Construct it before the profile is created.
  explicit OutputFiles(std::string path);
  /// Removes the new profile and restores the previous file. Call it after the profile is closed.
  void undo() const;

 private:
  std::string path_;
  bool had_one_ = false;
};

/// Names the files of a recording that begins a new one from time to time, and removes the oldest. Not thread-safe.
class SwitchedFiles {
 public:
  /// `most`: files to keep; 0: all.
  SwitchedFiles(std::string name, std::size_t most) : name_(std::move(name)), most_(most) {}

  /// Returns the path of the next file: no file has it, and it comes after the earlier ones by name. `unix_ms`:
  /// milliseconds since 1970.
  [[nodiscard]] std::string next(std::int64_t unix_ms);
  /// Notes that the file at the latest path was made.
  void made();
  /// Removes the oldest of the made files beyond `most`.
  void remove_surplus();

  [[nodiscard]] std::size_t files_made() const { return files_made_; }
  [[nodiscard]] std::size_t files_kept() const { return most_ != 0 ? files_.size() : files_made_; }
  /// The oldest and the latest of the files that were made and not removed. Precondition: one was made.
  [[nodiscard]] const std::string& oldest() const { return files_.front(); }
  [[nodiscard]] const std::string& latest() const { return files_.back(); }

 private:
  std::string name_;
  std::size_t most_;
  std::int64_t last_ms_ = 0;
  std::string next_;
  std::deque<std::string> files_;  // those that are kept; without a limit, the first and the last alone
  std::size_t files_made_ = 0;
};

}  // namespace crosstalk::daemon
