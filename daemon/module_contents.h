// SPDX-License-Identifier: Apache-2.0
// What files of code hold that have no build id: a report has to know whether they were built anew since.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

namespace crosstalk::daemon {

/// Not thread-safe.
class ModuleContents {
 public:
  /// base/file_content.h's hash of the file that the process calls `path`; 0: it can not be read. Each file is read
  /// once, as long as it does not change.
  [[nodiscard]] std::uint64_t hash_of(pid_t pid, const std::string& path);

 private:
  using File = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;  // with its size and time of change
  std::map<File, std::uint64_t> known_;
};

}  // namespace crosstalk::daemon
