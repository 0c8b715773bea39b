// SPDX-License-Identifier: Apache-2.0
// Which files the modules of processes are: a report has to know whether what lies at their paths then is what ran.
// What was not there any more when the recording ended is kept in the profile, and so is what compilers said of their
// code.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// Not thread-safe.
class ModuleFiles {
 public:
  /// `since_s`: files that were changed from then on (seconds of CLOCK_REALTIME) may have been replaced under the
  /// processes that run them.
  explicit ModuleFiles(std::int64_t since_s) : since_s_(since_s) {}

  /// Completes a module that process `pid` has just mapped: the hash of a file without a build id (base/file_content.h;
  /// of each file once, as long as it does not change), of the file that is mapped, whatever lies at its path by now.
  /// Where only the path is left, which leads elsewhere, the path says " (deleted)".
  void identify(pid_t pid, profile::ModuleRow& row);

  /// Looks whether files are still where they were mapped from, and reads those that are not. To be asked now and then,
  /// and at the end.
  void look_again();
  /// Reads what just-in-time compilers have written for profilers of the processes that mapped something: to be asked
  /// once, at the end. Their files are called by the processes' numbers, which others will have.
  void read_compilers_files();
  /// Copies of files that were read since the last call.
  [[nodiscard]] std::vector<profile::KeptFileRow> take_copies() { return std::exchange(copies_, {}); }

 private:
  using File = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;  // with its size and time of change
  /// A file that was where it was mapped from. It is held open where that keeps no file system from being unmounted.
  struct Held {
    std::string path, build_id;
    std::uint64_t content_hash = 0;
    UniqueFd file;
  };

  [[nodiscard]] std::uint64_t hash_of(const UniqueFd& file);
  [[nodiscard]] bool may_be_replaced(const profile::ModuleRow& row, const UniqueFd& at_path) const;
  void hold(const profile::ModuleRow& row, UniqueFd file);
  void keep(const std::string& path, const std::string& build_id, std::uint64_t content_hash, const UniqueFd& file);
  void keep_text(const std::string& path);
  [[nodiscard]] bool has_room_for(std::uint64_t bytes) const;
  /// Reads all `bytes` of `file` into `row`.
  void copy(const UniqueFd& file, std::uint64_t bytes, profile::KeptFileRow row);

  std::int64_t since_s_;
  std::map<pid_t, std::string> processes_;  // with the jitdump that they have mapped
  std::map<File, std::uint64_t> hashes_;
  std::vector<Held> held_;
  std::set<std::pair<std::string, std::string>> known_;  // paths and build ids that were held
  std::set<std::tuple<std::string, std::string, std::uint64_t>> kept_;
  std::uint64_t kept_bytes_ = 0;
  std::vector<profile::KeptFileRow> copies_;
};

}  // namespace crosstalk::daemon
