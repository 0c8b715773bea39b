// SPDX-License-Identifier: Apache-2.0
#include "driver/files/result_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/unique_fd.h"

namespace crosstalk::driver {
namespace {

tl::unexpected<Error> not_written(const std::string& path, int error) {
  return fail(ErrorCode::system, path + ": cannot be written: " + std::strerror(error));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
  return true;
}

}  // namespace

Result<void> replace_file(const std::string& path, const std::string& bytes) {
  std::string name = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) {
    return not_written(path, errno);
  }
  constexpr mode_t readable_by_all = 0644;
  const mode_t masked = ::umask(0);
  ::umask(masked);
  const bool written = write_all(fd.get(), bytes) && ::fchmod(fd.get(), readable_by_all & ~masked) == 0 &&
                       ::rename(name.c_str(), path.c_str()) == 0;
  if (!written) {
    const int error = errno;
    ::unlink(name.c_str());
    return not_written(path, error);
  }
  return {};
}

Result<void> write_result(const std::string& path, const std::string& bytes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISREG(status.st_mode)) {
    return replace_file(path, bytes);
  }
  std::signal(SIGPIPE, SIG_IGN);  // the reader of a pipe may have gone
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && write_all(fd.get(), bytes) ? Result<void>() : not_written(path, errno);
}

}  // namespace crosstalk::driver
