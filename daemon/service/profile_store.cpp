// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/profile_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/clock.h"

namespace crosstalk::service {
namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 4> companions = {"-wal", "-shm", "-journal", ".pb.gz"};

/// Returns the names in a folder, in any order; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), ::closedir);
  while (const dirent* const entry = opened ? ::readdir(opened.get()) : nullptr) {
    std::string name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") {
      names.push_back(std::move(name));
    }
  }
  return names;
}

/// Returns the name of the profile that a file belongs to.
std::string profile_of(const std::string& name) {
  for (const std::string_view end : companions) {
    if (name.ends_with(end)) {
      return name.substr(0, name.size() - end.size());
    }
  }
  return name;
}

std::int64_t changed_ns(const std::string& path) {
  struct stat of {};
  return ::stat(path.c_str(), &of) == 0 ? of.st_mtim.tv_sec * 1'000'000'000 + of.st_mtim.tv_nsec : 0;
}

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// Sets sizes and times of a profile that may have changed.
void measure(StoredProfile& profile) {
  profile.bytes = 0;
  profile.has_log = false;
  for (const char* const end : {"", "-wal", "-shm", "-journal", ".pb.gz"}) {
    struct stat of {};
    if (::stat((profile.path + end).c_str(), &of) == 0) {
      profile.bytes += static_cast<std::uint64_t>(of.st_size);
      profile.written_s = std::max<std::int64_t>(*end == 0 ? 0 : profile.written_s, of.st_mtim.tv_sec);
      profile.has_log = profile.has_log || std::string_view(end) == "-wal";
    }
  }
}

}  // namespace

Result<void> make_directory(const std::string& path) {
  const auto make = [&] { return ::mkdir(path.c_str(), 0700) == 0 || errno == EEXIST; };
  bool made = make();
  if (!made && errno == ENOENT) {
    const std::string parent = fs::path(path).parent_path();
    if (auto above = parent != path && !parent.empty() ? make_directory(parent) : Result<void>(); !above) {
      return above;
    }
    made = make();
  }
  std::error_code error;
  if (made && fs::is_directory(path, error)) {
    return {};
  }
  return fail(ErrorCode::permission,
              "cannot make the directory " + path + ": " + (made ? "there is a file" : std::strerror(errno)));
}

Result<UniqueFd> take_state(const std::string& state) {
  if (auto made = make_directory(state); !made) {
    return tl::unexpected<Error>(made.error());
  }
  UniqueFd lock(::open((state + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) {
    return fail(ErrorCode::permission, "the state directory " + state + " cannot be written: " + std::strerror(errno) +
                                           "; choose another one in [state]");
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(ErrorCode::refused,
                "another crosstalkd has the state directory " + state + "; stop it, or choose another one in [state]");
  }
  return lock;
}

std::string session_folder(const std::string& state) { return state + "/sessions"; }

void clear_sessions(const std::string& state) {
  const std::string folder = session_folder(state) + "/";
  for (const std::string& name : names_in(folder)) {
    ::unlink((folder + name).c_str());
  }
}

bool is_begun(const std::string& path) {
  struct stat of {};
  return ::lstat(path.c_str(), &of) == 0 && S_ISREG(of.st_mode) && of.st_size > 0;
}

bool is_whole(const std::string& path) {
  return is_begun(path) && !exists(path + "-wal") && !exists(path + "-journal") && !is_in_use(path);
}

// SQLite's locks: a connection that writes a log keeps a shared one on these bytes (sqlite.org/lockingv3.html).
bool is_in_use(const std::string& path) {
  constexpr off_t first_lock = 0x40000000;
  constexpr off_t locks = 512;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = first_lock;
  lock.l_len = locks;
  return file.valid() && ::fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool is_left(const StoredProfile& profile, std::int64_t now_s) {
  constexpr std::int64_t settled_s = 60;
  return profile.has_log && now_s - profile.written_s > settled_s && !is_in_use(profile.path);
}

std::vector<StoredProfile> profiles_of(const std::string& state, const std::string& service) {
  const std::string folder = state + "/services/" + service + "/";
  std::map<std::string, StoredProfile> by_name;
  for (const std::string& file : names_in(folder)) {
    struct stat of {};
    if (!file.starts_with(service + ".db") || ::lstat((folder + file).c_str(), &of) != 0 || !S_ISREG(of.st_mode)) {
      continue;
    }
    StoredProfile& profile = by_name[profile_of(file)];
    profile.bytes += static_cast<std::uint64_t>(of.st_size);
    profile.written_s = std::max<std::int64_t>(profile.written_s, of.st_mtim.tv_sec);
    profile.has_log = profile.has_log || file.ends_with("-wal");
  }
  std::vector<StoredProfile> profiles;
  for (auto& [name, profile] : by_name) {
    profile.service = service;
    profile.name = name;
    profile.path = folder + name;
    profiles.push_back(std::move(profile));
  }
  return profiles;
}

std::vector<StoredProfile> ProfileStore::look() {
  // A time stamp is that of the last tick: a change right after a look may have the same.
  constexpr std::int64_t settled_ns = 2'000'000'000;
  std::map<std::string, Folder> there;
  std::vector<StoredProfile> all;
  const std::string services = state_ + "/services/";
  for (const std::string& service : names_in(services)) {
    const std::int64_t now = changed_ns(services + service);
    const auto since = static_cast<std::int64_t>(clock_ns(CLOCK_REALTIME)) - now;
    Folder& folder = there[service];
    folder = std::exchange(folders_[service], {});
    if (folder.changed_ns != now || since < settled_ns) {
      folder = {now, profiles_of(state_, service)};
    }
    for (StoredProfile& profile : folder.profiles) {
      if (profile.has_log) {
        measure(profile);
      }
    }
    all.insert(all.end(), folder.profiles.begin(), folder.profiles.end());
  }
  folders_ = std::move(there);
  return all;
}

std::vector<std::string> too_many(const std::vector<StoredProfile>& profiles, std::int64_t now_s,
                                  std::uint64_t max_age_s, std::uint64_t max_bytes,
                                  bool (*left)(const StoredProfile&, std::int64_t now_s)) {
  std::vector<const StoredProfile*> oldest_first;
  std::uint64_t bytes = 0;
  for (const StoredProfile& profile : profiles) {
    bytes += profile.bytes;
    oldest_first.push_back(&profile);
  }
  std::stable_sort(oldest_first.begin(), oldest_first.end(),
                   [](const auto* a, const auto* b) { return a->written_s < b->written_s; });
  std::vector<std::string> paths;
  for (const StoredProfile* const profile : oldest_first) {
    // A clock that was put back makes profiles of the future, which are not old.
    const bool old = now_s > profile->written_s && static_cast<std::uint64_t>(now_s - profile->written_s) > max_age_s;
    if ((old || bytes > max_bytes) && (!profile->has_log || left(*profile, now_s))) {
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
