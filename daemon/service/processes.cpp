// SPDX-License-Identifier: Apache-2.0
#include "daemon/service/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>

#include "base/number.h"
#include "base/proc_fields.h"
#include "base/process_owner.h"

namespace crosstalk::service {
namespace {

std::string link_of(const std::string& path) {
  std::array<char, 4096> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

/// Returns the beginning of a process's arguments, joined by spaces. In the file each is ended by a zero.
std::string command_of(const std::string& folder) {
  const UniqueFd file(::open((folder + "/cmdline").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> start{};
  const ssize_t length = ::read(file.get(), start.data(), start.size());
  std::string words(start.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  while (!words.empty() && words.back() == '\0') {
    words.pop_back();
  }
  std::replace(words.begin(), words.end(), '\0', ' ');
  return words;
}

std::optional<pid_t> number_of(std::string_view text) {
  const auto pid = whole_number<pid_t>(text);
  return pid && *pid > 0 ? pid : std::nullopt;
}

/// True if `path` has `unit` as a component.
bool has_component(const std::string& path, const std::string& unit) {
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) {
    if (part == unit) {
      return true;
    }
  }
  return false;
}

bool is_at_or_below(const std::string& path, std::string group) {
  while (group.size() > 1 && group.back() == '/') {
    group.pop_back();
  }
  return path == group || group == "/" || path.starts_with(group + "/");
}

}  // namespace

std::string cgroup_in(const std::string& text) {
  std::istringstream lines(text);
  std::string of_systemd;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers == "name=systemd") {
      of_systemd = line.substr(second + 1);
    } else if (controllers.empty() && (of_systemd.empty() || line.substr(second + 1) != "/")) {
      return line.substr(second + 1);
    }
  }
  return of_systemd;
}

std::optional<Process> process_of(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const auto owner = process_owner(pid);
  if (!owner) {
    return std::nullopt;
  }
  Process process;
  process.pid = pid;
  process.owner = *owner;
  process.command = command_of(folder);
  const std::string status = file_text(folder + "/status");
  const auto state = proc_field(status, "State");
  const auto group_id = proc_field(status, "Tgid");
  const auto is_kernels = proc_field(status, "VmSize");  // kernel threads have no memory
  if (!state || state->starts_with('Z') || !is_kernels || !group_id || number_of(*group_id) != pid) {
    return std::nullopt;
  }
  process.parent = number_of(proc_field(status, "PPid").value_or("")).value_or(0);
  process.executable = link_of(folder + "/exe");
  process.cgroup = cgroup_in(file_text(folder + "/cgroup"));
  return process;
}

bool has_ended(const UniqueFd& pidfd) {
  pollfd polled{pidfd.get(), POLLIN, 0};
  return ::poll(&polled, 1, 0) != 0;
}

Result<HeldProcess> hold(pid_t pid) {
  HeldProcess held;
  held.pidfd.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!held.pidfd.valid() && errno != ESRCH && errno != EINVAL) {
    return fail(ErrorCode::system, "cannot hold process " + std::to_string(pid) + ": " + std::strerror(errno));
  }
  auto process = held.pidfd.valid() ? process_of(pid) : std::nullopt;
  if (!process || has_ended(held.pidfd)) {
    return fail(ErrorCode::not_found, "there is no process " + std::to_string(pid));
  }
  held.process = std::move(*process);
  return held;
}

std::vector<pid_t> ancestors_of(pid_t pid) {
  constexpr std::size_t most = 256;
  std::vector<pid_t> ancestors;
  while (ancestors.size() < most) {
    const std::string status = file_text("/proc/" + std::to_string(pid) + "/status");
    pid = number_of(proc_field(status, "PPid").value_or("")).value_or(0);
    if (pid == 0) {
      break;
    }
    ancestors.push_back(pid);
  }
  return ancestors;
}

std::vector<Process> ProcessList::look(std::uint64_t now_ns) {
  constexpr std::uint64_t second = 1'000'000'000;
  std::map<pid_t, Known> there;
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  while (const dirent* const entry = folder ? ::readdir(folder.get()) : nullptr) {
    const auto pid = number_of(static_cast<const char*>(entry->d_name));
    if (!pid) {
      continue;
    }
    const auto before = known_.find(*pid);
    Known known = before != known_.end() ? std::move(before->second) : Known{};
    if (now_ns >= known.due_ns) {
      // A process that was just seen for the first time may be about to execute its program.
      const bool first = known.due_ns == 0;
      known = {process_of(*pid), now_ns + (first ? 2 : 45 + static_cast<std::uint64_t>(*pid) % 30) * second};
    }
    if (known.process) {
      all.push_back(*known.process);
    }
    there.emplace(*pid, std::move(known));
  }
  known_ = std::move(there);
  std::sort(all.begin(), all.end(), [](const Process& a, const Process& b) { return a.pid < b.pid; });
  return all;
}

bool belongs_to(const Process& process, const Match& match) {
  switch (match.by) {
    case MatchBy::unit:
      return has_component(process.cgroup, match.pattern);
    case MatchBy::cgroup:
      return is_at_or_below(process.cgroup, match.pattern);
    case MatchBy::executable:
      return ::fnmatch(match.pattern.c_str(), process.executable.c_str(), 0) == 0;
    case MatchBy::command:
      return ::fnmatch(match.pattern.c_str(), process.command.c_str(), 0) == 0;
  }
  return false;
}

std::vector<pid_t> processes_of(const std::vector<Process>& all, const Match& match, bool children) {
  std::set<pid_t> members;
  for (const Process& process : all) {
    if (belongs_to(process, match)) {
      members.insert(process.pid);
    }
  }
  const auto parent_of = [&](pid_t pid) {
    const auto found = std::lower_bound(all.begin(), all.end(), pid,
                                        [](const Process& process, pid_t wanted) { return process.pid < wanted; });
    return found != all.end() && found->pid == pid ? found->parent : 0;
  };
  const auto descends = [&](pid_t pid) {
    std::set<pid_t> seen;  // a snapshot of a changing tree may have a cycle
    for (pid_t at = parent_of(pid); at > 0 && seen.insert(at).second; at = parent_of(at)) {
      if (members.contains(at)) {
        return true;
      }
    }
    return false;
  };
  std::vector<pid_t> roots;
  std::copy_if(members.begin(), members.end(), std::back_inserter(roots),
               [&](pid_t pid) { return !children || !descends(pid); });
  return roots;
}

}  // namespace crosstalk::service
