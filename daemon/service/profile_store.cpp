// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/profile_store.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace crosstalk::service {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> companions = {"-wal", "-shm", "-journal", ".pb.gz"};

bool is_companion(const std::string& name) {
  return std::any_of(companions.begin(), companions.end(), [&](const char* end) { return name.ends_with(end); });
}

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

std::int64_t written_s(const std::string& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  const auto since = std::chrono::file_clock::to_sys(time).time_since_epoch();
  return error ? 0 : std::chrono::duration_cast<std::chrono::seconds>(since).count();
}

StoredProfile profile_at(const std::string& path, const std::string& service) {
  StoredProfile profile;
  profile.service = service;
  profile.name = fs::path(path).filename();
  profile.path = path;
  profile.bytes = size_of(path);
  for (const char* const end : companions) {
    profile.bytes += size_of(path + end);
  }
  profile.written_s = written_s(path);
  std::error_code error;
  profile.finished = !fs::exists(path + "-wal", error);
  return profile;
}

}  // namespace

Result<void> make_directory(const std::string& path) {
  std::error_code error;
  const bool is_new = fs::create_directories(path, error);
  if (!fs::is_directory(path, error)) {
    return fail(ErrorCode::permission, "cannot make the directory " + path + ": " + error.message());
  }
  if (is_new) {
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec, error);
  }
  return {};
}

std::vector<StoredProfile> profiles_of(const std::string& state, const std::string& service) {
  std::vector<StoredProfile> profiles;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(state + "/services/" + service, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(service + ".db") && !is_companion(name)) {
      profiles.push_back(profile_at(entry.path(), service));
    }
  }
  std::sort(profiles.begin(), profiles.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return profiles;
}

std::vector<StoredProfile> all_profiles(const std::string& state) {
  std::vector<StoredProfile> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(state + "/services", error)) {
    auto profiles = profiles_of(state, entry.path().filename());
    std::move(profiles.begin(), profiles.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<std::string> too_many(const std::vector<StoredProfile>& profiles, std::int64_t now_s,
                                  std::uint64_t max_age_s, std::uint64_t max_bytes) {
  std::vector<const StoredProfile*> oldest_first;
  std::uint64_t bytes = 0;
  for (const StoredProfile& profile : profiles) {
    bytes += profile.bytes;
    if (profile.finished) {
      oldest_first.push_back(&profile);
    }
  }
  std::stable_sort(oldest_first.begin(), oldest_first.end(),
                   [](const auto* a, const auto* b) { return a->written_s < b->written_s; });
  std::vector<std::string> paths;
  for (const StoredProfile* const profile : oldest_first) {
    // A clock that was put back makes profiles of the future, which are not old.
    const bool old = now_s > profile->written_s && static_cast<std::uint64_t>(now_s - profile->written_s) > max_age_s;
    if (old || bytes > max_bytes) {
      paths.push_back(profile->path);
      bytes -= profile->bytes;
    }
  }
  return paths;
}

void remove_profile(const std::string& path) {
  std::error_code error;
  for (const char* const end : companions) {
    fs::remove(path + end, error);
  }
  fs::remove(path, error);
}

}  // namespace crosstalk::service
