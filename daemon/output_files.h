// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace crosstalk::daemon {

/// Remembers what was at the output's place before, so that a session that does not come about leaves
/// the place as it was.
class OutputFiles {
 public:
  /// Before the profile is created.
  explicit OutputFiles(std::string path);
  /// Removes the new profile and puts the previous one back. After the profile is closed.
  void undo() const;

 private:
  std::string path_;
  bool had_one_ = false;
};

}  // namespace crosstalk::daemon
