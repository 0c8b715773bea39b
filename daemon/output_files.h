// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

  /// The made files that were not removed, oldest first.
  [[nodiscard]] const std::vector<std::string>& files() const { return files_; }
  [[nodiscard]] std::size_t files_made() const { return files_made_; }

 private:
  std::string name_;
  std::size_t most_;
  std::int64_t last_ms_ = 0;
  std::string latest_;
  std::vector<std::string> files_;
  std::size_t files_made_ = 0;
};

}  // namespace crosstalk::daemon
