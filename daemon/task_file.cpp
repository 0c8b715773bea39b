// SPDX-License-Identifier: Apache-2.0
#include "daemon/task_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "base/unique_fd.h"

namespace crosstalk::daemon {

std::optional<std::string> task_file(pid_t pid, pid_t tid, const char* name) {
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/" + name;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 96> text{};
  const ssize_t bytes = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  return bytes > 0 ? std::optional(std::string(text.data(), static_cast<std::size_t>(bytes))) : std::nullopt;
}

}  // namespace crosstalk::daemon
