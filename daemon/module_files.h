// SPDX-License-Identifier: Apache-2.0
// Identifies the files of processes' modules, so that a report can tell whether the file at a path is the one that ran.
// The profile keeps files that are gone when the recording ends, files that only the process's own mount namespace has,
// and what compilers wrote about their code.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "profile/model.h"

namespace crosstalk::daemon {

/// A process's mapping at one address.
struct MappedAt {
  std::string range;  // its name in map_files
  std::uint64_t inode = 0;
  bool gone = false;  // the path no longer leads to the file
};

/// Not thread-safe.
class ModuleFiles {
 public:
  /// `since_s`: CLOCK_REALTIME seconds. Files that changed since then may have been replaced under the processes that
  /// run them.
  explicit ModuleFiles(std::int64_t since_s) : since_s_(since_s) {}

  /// Completes a module that process `pid` has just mapped: adds the hash of a file without a build id
  /// (base/file_content.h; hashed once until it changes). Uses the mapped file, whatever its path leads to now. If only
  /// the path is left and leads elsewhere, appends " (deleted)" to it.
  void identify(pid_t pid, profile::ModuleRow& row);

  /// Checks whether files are still where they were mapped from, and copies those that are not. Call it now and then,
  /// and at the end.
  void look_again();
  /// Reads the files that just-in-time compilers have written for profilers. Call it once, at the end of a file: the
  /// files' names hold pids, which later processes reuse.
  void read_compilers_files();
  /// Keeps copied files open, as far as descriptors allow, so that begin_file() can copy them again.
  void keep_for_later_files() { keeps_open_ = true; }
  /// Begins the recording's next profile: copies the files again that modules of `in_use` have. Forgets the other
  /// copies, and processes that have ended.
  void begin_file(const std::vector<profile::ModuleRow>& in_use);
  /// Returns the copies of files that were read since the last call.
  [[nodiscard]] std::vector<profile::KeptFileRow> take_copies() { return std::exchange(copies_, {}); }

 private:
  using File = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;  // also size and time of change
  /// A file that was at its mapped path. Held open if that blocks no unmount.
  struct Held {
    std::string path, build_id;
    std::uint64_t content_hash = 0;
    UniqueFd file;
  };

  using Name = std::tuple<std::string, std::string, std::uint64_t>;  // path, build id, hash of the content

  [[nodiscard]] std::uint64_t hash_of(const UniqueFd& file);
  [[nodiscard]] std::optional<MappedAt> find_mapped(pid_t pid, std::uint64_t address);
  [[nodiscard]] bool may_be_replaced(const profile::ModuleRow& row, const UniqueFd& at_path) const;
  void hold(const profile::ModuleRow& row, UniqueFd file);
  void keep(const std::string& path, const std::string& build_id, std::uint64_t content_hash, const UniqueFd& file);
  void keep_text(pid_t pid, const std::string& seen_path, const std::string& our_path, const std::string& path);
  [[nodiscard]] bool has_room_for(std::uint64_t bytes) const;
  /// Reads all `bytes` of `file` into `row`.
  void copy(const UniqueFd& file, std::uint64_t bytes, profile::KeptFileRow row);

  /// Facts that /proc no longer tells once the process has ended.
  struct Process {
    std::string own_id;    // the id that it has for itself: another one in a pid namespace of its own
    bool our_tmp = false;  // its /tmp is ours
    std::string jit_dump;  // that it has mapped
  };

  /// The last process's mappings.
  struct Maps {
    pid_t pid = 0;
    std::uint64_t read_ns = 0;
    std::string text;
  };

  std::int64_t since_s_;
  Maps maps_;
  std::map<pid_t, Process> processes_;
  std::map<File, std::uint64_t> hashes_;
  std::vector<Held> held_;
  std::set<std::pair<std::string, std::string>> known_;  // paths and build ids that were held
  std::map<Name, UniqueFd> kept_;                        // open only if later files may need a copy
  bool keeps_open_ = false;
  std::uint64_t kept_bytes_ = 0;
  std::vector<profile::KeptFileRow> copies_;
};

}  // namespace crosstalk::daemon
