// SPDX-License-Identifier: Apache-2.0
#include "daemon/module_contents.h"

#include <sys/stat.h>

#include "base/file_content.h"

namespace crosstalk::daemon {

std::uint64_t ModuleContents::hash_of(pid_t pid, const std::string& path) {
  // The process may have another root than we do; when it has ended, it most likely had ours.
  std::string place = "/proc/" + std::to_string(pid) + "/root" + path;
  struct stat status {};
  if (::stat(place.c_str(), &status) != 0) {
    place = path;
    if (::stat(place.c_str(), &status) != 0) {
      return 0;
    }
  }
  const File file{status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  const auto [known, fresh] = known_.try_emplace(file);
  if (fresh) {
    known->second = content_hash(place);
  }
  return known->second;
}

}  // namespace crosstalk::daemon
