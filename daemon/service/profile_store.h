// SPDX-License-Identifier: Apache-2.0
// The profiles in the daemon's state directory: services/NAME/NAME.db.TIME of services, sessions/N.db of clients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace crosstalk::service {

struct StoredProfile {
  std::string service, name;  // the file's name
  std::string path;
  std::uint64_t bytes = 0;     // with the files that belong to it
  std::int64_t written_s = 0;  // of the last change, Unix time
  bool finished = false;       // nobody writes to it
};

/// Makes a directory with its parents, for this user and group alone. Fails if it is not there in the end.
[[nodiscard]] Result<void> make_directory(const std::string& path);

/// Returns a service's profiles, oldest first by name.
[[nodiscard]] std::vector<StoredProfile> profiles_of(const std::string& state, const std::string& service);

/// Returns the profiles of all services that are there, configured or not.
[[nodiscard]] std::vector<StoredProfile> all_profiles(const std::string& state);

/// Returns the paths of finished profiles to delete: older than `max_age_s`, or, oldest first, beyond `max_bytes`
/// together with the unfinished ones.
[[nodiscard]] std::vector<std::string> too_many(const std::vector<StoredProfile>& profiles, std::int64_t now_s,
                                                std::uint64_t max_age_s, std::uint64_t max_bytes);

/// Removes a profile and the files that belong to it.
void remove_profile(const std::string& path);

}  // namespace crosstalk::service
