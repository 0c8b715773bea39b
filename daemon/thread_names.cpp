// SPDX-License-Identifier: Apache-2.0
#include "daemon/thread_names.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "daemon/task_file.h"

namespace crosstalk::daemon {
namespace {

constexpr std::uint64_t least_pause_ns = 50'000'000;
constexpr std::uint64_t most_pause_ns = 1'000'000'000;

}  // namespace

std::optional<std::string> thread_name(pid_t pid, pid_t tid) {
  auto name = task_file(pid, tid, "comm");
  if (name && name->back() == '\n') {  // the kernel appends it; the name may hold others
    name->pop_back();
  }
  return name;
}

std::string executable_of(pid_t pid) {
  std::array<char, PATH_MAX> path{};
  const ssize_t bytes = ::readlink(("/proc/" + std::to_string(pid) + "/exe").c_str(), path.data(), path.size());
  return bytes > 0 ? std::string(path.data(), static_cast<std::size_t>(bytes)) : std::string();
}

bool NameSchedule::due(std::uint64_t now_ns) {
  if (now_ns < due_ns_) {
    return false;
  }
  due_ns_ = now_ns + std::clamp(now_ns - begin_ns_, least_pause_ns, most_pause_ns);
  return true;
}

}  // namespace crosstalk::daemon
