// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>

#include "base/unique_fd.h"

namespace crosstalk::symbolizer {

std::optional<std::string> read_text_file(const std::string& path) {
  constexpr std::size_t largest_file = 1U << 30U;
  // O_NOFOLLOW, O_NONBLOCK: anyone may put another kind of file under that name in /tmp.
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::string text;
  char buffer[65536];
  ssize_t count = 0;
  while (text.size() < largest_file && (count = ::read(fd.get(), buffer, sizeof buffer)) > 0) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace crosstalk::symbolizer
