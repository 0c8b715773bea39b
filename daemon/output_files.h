// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

}  // namespace crosstalk::daemon
