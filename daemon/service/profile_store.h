// SPDX-License-Identifier: Apache-2.0
// The profiles in the daemon's state directory: services/NAME/NAME.db.TIME of services, sessions/PID-N.db of clients,
// by the daemon's process and the session's number.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"

namespace crosstalk::service {

struct StoredProfile {
  std::string service, name;  // the file's name
  std::string path;
  std::uint64_t bytes = 0;     // with the files that belong to it
  std::int64_t written_s = 0;  // of the last change, Unix time
  bool has_log = false;        // a -wal lies beside it: the recorder writes to it, or was killed meanwhile
};

/// Makes a directory with its parents, for this user alone. Fails if it is not there in the end.
[[nodiscard]] Result<void> make_directory(const std::string& path);

/// Makes the state directory, or checks that it can be written, and takes it for this process until the result is
/// closed. Refuses if another daemon has it.
[[nodiscard]] Result<UniqueFd> take_state(const std::string& state);

[[nodiscard]] std::string session_folder(const std::string& state);
/// Removes what an earlier daemon's sessions have left: their clients are gone.
void clear_sessions(const std::string& state);

/// True if the file is there and not empty.
[[nodiscard]] bool is_begun(const std::string& path);
/// True if the profile is one file that nobody writes to.
[[nodiscard]] bool is_whole(const std::string& path);
/// True if a process has the profile open.
[[nodiscard]] bool is_in_use(const std::string& path);
/// True if a killed recorder has left the profile: it has a log, nobody has it open, and it was not written for a
/// minute, so that nobody is about to open it. `now_s`: Unix time.
[[nodiscard]] bool is_left(const StoredProfile& profile, std::int64_t now_s);

/// Returns a service's profiles, oldest first by name.
[[nodiscard]] std::vector<StoredProfile> profiles_of(const std::string& state, const std::string& service);

/// The profiles of all services that are there, configured or not. Looks only at directories in which a file was made
/// or removed since the last time, and at profiles that have a log. Not thread-safe.
class ProfileStore {
 public:
  explicit ProfileStore(std::string state) : state_(std::move(state)) {}
  [[nodiscard]] std::vector<StoredProfile> look();

 private:
  struct Folder {
    std::int64_t changed_ns = 0;
    std::vector<StoredProfile> profiles;
  };
  std::string state_;
  std::map<std::string, Folder> folders_;  // by service
};

/// Returns the paths of profiles to delete: older than `max_age_s`, or, oldest first, beyond `max_bytes`. Profiles with
/// a log count, and stay unless they are `left`.
[[nodiscard]] std::vector<std::string> too_many(const std::vector<StoredProfile>& profiles, std::int64_t now_s,
                                                std::uint64_t max_age_s, std::uint64_t max_bytes,
                                                bool (*left)(const StoredProfile&, std::int64_t now_s) = is_left);

/// Removes a profile and the files that belong to it.
void remove_profile(const std::string& path);

}  // namespace crosstalk::service
