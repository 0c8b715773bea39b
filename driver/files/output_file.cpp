// SPDX-License-Identifier: Apache-2.0
#include "driver/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/unique_fd.h"

namespace crosstalk::driver {

namespace {

tl::unexpected<Error> not_writable(const std::string& path, const std::string& why) {
  return fail(ErrorCode::permission, path + ": cannot be written: " + why + "; choose another file with -o");
}

/// Creates an unnamed file if the file system supports it; else a short-lived one.
Result<void> try_to_write(const std::string& path, const std::string& folder) {
  if (UniqueFd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)).valid()) {
    return {};
  }
  std::string name = folder + "/.crosstalk-XXXXXX";
  const UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) {
    return not_writable(path, std::strerror(errno));
  }
  ::unlink(name.c_str());
  return {};
}

}  // namespace

NameFacts name_facts() {
  NameFacts facts;
  facts.pid = ::getpid();
  utsname names{};
  if (::uname(&names) == 0) {
    facts.host = names.nodename;
  }
  const std::time_t now = std::time(nullptr);
  ::localtime_r(&now, &facts.time);
  return facts;
}

Result<std::string> expand_name(const std::string& name, const NameFacts& facts) {
  std::string expanded;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      expanded += name[i];
      continue;
    }
    const char letter = ++i < name.size() ? name[i] : '\0';
    char time[32] = {};
    switch (letter) {
      case 'p':
        expanded += std::to_string(facts.pid);
        break;
      case 'h':
        expanded += facts.host;
        break;
      case 't':
        std::strftime(time, sizeof(time), "%Y%m%d-%H%M%S", &facts.time);
        expanded += time;
        break;
      case '%':
        expanded += '%';
        break;
      default:
        return fail(ErrorCode::invalid_argument,
                    "--output: '" + name + "': % must be followed by p (process id), h (host), t (time) or %");
    }
  }
  return expanded;
}

Result<void> check_writable(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return not_writable(path, folder + ": " + (error ? error.message() : std::string("not a directory")));
  }
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return not_writable(path, S_ISDIR(status.st_mode) ? "it is a directory" : "it is not a regular file");
  }
  return try_to_write(path, folder);
}

}  // namespace crosstalk::driver
