// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::driver::live {

/// A folder that only this user may enter, below TMPDIR (else /tmp). It is removed with all that is in it, by the
/// destructor; if this process is killed, by a child process that does nothing but wait for that.
class PrivateFolder {
 public:
  /// Call it before there are threads.
  [[nodiscard]] static Result<PrivateFolder> make();
  PrivateFolder(PrivateFolder&& other) noexcept
      : path_(std::exchange(other.path_, {})),
        guard_(std::exchange(other.guard_, -1)),
        life_line_(std::move(other.life_line_)) {}
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  ~PrivateFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  explicit PrivateFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
  pid_t guard_ = -1;    // -1: there is none
  UniqueFd life_line_;  // the guard sees its end
};

}  // namespace crosstalk::driver::live
