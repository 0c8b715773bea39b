// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/target_process.h"

#include <dirent.h>
#include <elf.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <memory>

#include "base/number.h"
#include "base/proc_fields.h"
#include "collectors/ptrace_scope.h"
#include "profile/arena.h"

namespace crosstalk::observer {

std::string folder_of_thread(pid_t pid, pid_t tid) {
  return "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
}

namespace {

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid); }

/// The value of a line of /proc/.../status; empty: there is none.
std::string field(const std::string& status, std::string_view key) {
  return std::string(proc_field(status, key).value_or(""));
}

std::uint64_t number(std::string_view text) { return leading_number<std::uint64_t>(text).value_or(0); }

/// A thread of the kernel has no memory of its own, so no sizes of it in its status. Neither has a process that is
/// about to end.
bool has_memory(const std::string& status) { return !field(status, "VmSize").empty(); }

/// Returns the kernel's flags of the task with this folder.
std::uint64_t kernel_flags(const std::string& folder) {
  constexpr int flags = 9;
  return number(stat_field(file_text(folder + "/stat"), flags));
}

bool is_kernel_thread(pid_t pid) {
  constexpr std::uint64_t of_the_kernel = 0x00200000;  // PF_KTHREAD
  return (kernel_flags(folder_of(pid)) & of_the_kernel) != 0;
}

/// A thread of a process that never leaves the kernel. One of its flags had another meaning before Linux 6.4; those
/// threads block all signals that can be blocked, libc's own among them.
bool is_kernel_worker(pid_t pid, pid_t tid) {
  constexpr std::uint64_t flags = 0x00000010 | 0x00004000;  // PF_IO_WORKER, PF_USER_WORKER
  const std::string folder = folder_of_thread(pid, tid);
  return (kernel_flags(folder) & flags) != 0 &&
         proc_field(file_text(folder + "/status"), "SigBlk").value_or("") == "fffffffffffbfeff";
}

/// The names in a folder of /proc that are numbers.
std::vector<pid_t> numbers_in(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  while (folder) {
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) {
      break;
    }
    const std::uint64_t value = number(static_cast<const char*>(entry->d_name));
    if (value != 0) {
      numbers.push_back(static_cast<pid_t>(value));
    }
  }
  return numbers;
}

/// 0: there is no such process, or it has ended.
pid_t parent_of(pid_t pid) {
  constexpr int state = 3;
  constexpr int parent = 4;
  const std::string text = file_text(folder_of(pid) + "/stat");
  return stat_field(text, state) == "Z" ? 0 : static_cast<pid_t>(number(stat_field(text, parent)));
}

/// The processes that threads of these have started. Appends them to `found`.
void append_started(pid_t pid, const std::vector<pid_t>& threads, std::vector<pid_t>& found) {
  for (const pid_t tid : threads) {
    const std::string text = file_text(folder_of_thread(pid, tid) + "/children");
    std::string_view rest = text;
    while (const auto child = take_leading<pid_t>(rest)) {
      found.push_back(*child);
      rest.remove_prefix(rest.empty() ? 0 : 1);
    }
  }
}

/// All processes that may be children of these: those that the kernel lists for each of their threads, or all of the
/// machine where it does not (CONFIG_PROC_CHILDREN), or where that is less to read.
std::vector<pid_t> candidates_for(const std::set<pid_t>& parents) {
  static const bool listed = ::access("/proc/thread-self/children", R_OK) == 0;
  std::vector<pid_t> all = numbers_in("/proc");
  std::map<pid_t, std::vector<pid_t>> threads;
  std::size_t thread_count = 0;
  for (const pid_t pid : parents) {
    threads[pid] = threads_of(pid);
    thread_count += threads[pid].size();
  }
  if (!listed || thread_count >= all.size()) {
    return all;
  }
  std::vector<pid_t> found;
  for (const auto& [pid, tids] : threads) {
    append_started(pid, tids, found);
  }
  return found;
}

tl::unexpected<Error> refuse(pid_t pid, const std::string& why) {
  return fail(ErrorCode::refused, "-p " + std::to_string(pid) + ": " + why);
}

/// The rights that decide if a process may read another's memory (ptrace(2), "Ptrace access mode checking").
struct Rights {
  std::uint64_t user = 0;
  std::uint64_t permitted = 0;  // capabilities
  bool may_trace = false;       // CAP_SYS_PTRACE
};

Rights rights_of(const std::string& status) {
  constexpr unsigned cap_sys_ptrace = 19;
  const auto capabilities = [&](std::string_view key) {
    return leading_number<std::uint64_t>(field(status, key), 16).value_or(0);
  };
  return {number(field(status, "Uid")), capabilities("CapPrm"), (capabilities("CapEff") >> cap_sys_ptrace & 1U) != 0};
}

/// True if root owns the process's files in /proc, because it has made itself unreadable, or executes a file that its
/// user may not read. The folder itself is always its user's.
bool forbids_itself(pid_t pid, const Rights& target) {
  struct stat facts {};
  return ::stat((folder_of(pid) + "/status").c_str(), &facts) == 0 && facts.st_uid != target.user;
}

std::string why_unreadable(pid_t pid) {
  const Rights own = rights_of(file_text("/proc/self/status"));
  const Rights target = rights_of(file_text(folder_of(pid) + "/status"));
  const std::string what = "its memory may not be read: ";
  if (own.may_trace) {
    return what + "the kernel refuses it to this recorder, which has the right to trace others" +
           ((target.permitted & ~own.permitted) != 0 ? " but not all rights that the process has" : "") +
           "; a security module, a sandbox or a user namespace protects it; record outside of that";
  }
  if (own.user != target.user) {
    return what + "it is of user " + std::to_string(target.user) + ", and this recorder of user " +
           std::to_string(own.user) +
           (own.user == 0
                ? " without the capability SYS_PTRACE; start the container with: docker run --cap-add SYS_PTRACE"
                : "; record as that user or as root");
  }
  if (forbids_itself(pid, target)) {
    return what +
           "it forbids that to its own user (prctl PR_SET_DUMPABLE), or its program may not be read; record as root";
  }
  const std::string advice = collectors::scope_advice(collectors::ptrace_scope());
  return what + (advice.empty() ? "it has rights that this recorder lacks; record as root" : advice);
}

/// Returns what the kernel told the program at its start, once it is there: an exec is reported some 100 us before.
std::map<std::uint64_t, std::uint64_t> settled_auxiliary_vector(pid_t pid) {
  constexpr int most_looks = 50;
  constexpr timespec pause{0, 100'000};
  std::map<std::uint64_t, std::uint64_t> entries;
  for (int look = 0; look < most_looks && !entries.contains(AT_PHDR); ++look) {
    if (look != 0) {
      ::nanosleep(&pause, nullptr);
    }
    const std::string bytes = file_text(folder_of(pid) + "/auxv");
    for (std::size_t at = 0; at + sizeof(Elf64_auxv_t) <= bytes.size(); at += sizeof(Elf64_auxv_t)) {
      Elf64_auxv_t entry;
      std::memcpy(&entry, bytes.data() + at, sizeof entry);
      entries[entry.a_type] = entry.a_un.a_val;
    }
  }
  return entries;
}

}  // namespace

bool TargetMemory::read(std::uint64_t address, void* out, std::size_t bytes) const {
  iovec here{out, bytes};
  iovec there{reinterpret_cast<void*>(address), bytes};  // NOLINT: an address of the target
  const auto read_through = [&](pid_t thread) {
    return ::process_vm_readv(thread, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
  };
  if (read_through(through_)) {
    return true;
  }
  if (errno != ESRCH) {
    return false;
  }
  through_ = living_thread(pid_);
  return read_through(through_);
}

Result<void> check_process(pid_t pid) {
  const std::string status = file_text(folder_of(pid) + "/status");
  if (status.empty()) {
    return refuse(pid, "there is no process of that id");
  }
  if (const std::uint64_t process = number(field(status, "Tgid")); process != static_cast<std::uint64_t>(pid)) {
    return refuse(pid, "that is a thread of process " + std::to_string(process) + "; give the process's id");
  }
  if (pid == ::getpid()) {
    return refuse(pid, "that is this recorder itself");
  }
  if (has_ended(pid)) {
    return refuse(pid, "it has ended and waits for its parent to ask how (a zombie)");
  }
  if (!has_memory(file_text(folder_of(living_thread(pid)) + "/status"))) {
    return refuse(pid, is_kernel_thread(pid) ? "it is a thread of the kernel; crosstalk observes programs"
                                             : "it is about to end: it has no memory any more");
  }
  if (Result<void> readable = check_memory(pid, maps_of(pid)); !readable) {
    return fail(readable.error().code, "-p " + std::to_string(pid) + ": " + readable.error().message);
  }
  return {};
}

Result<void> check_memory(pid_t pid, const std::vector<Mapping>& maps) {
  const auto readable = std::find_if(maps.begin(), maps.end(), [](const Mapping& mapping) {
    return mapping.readable && !mapping.path.starts_with("[v");
  });
  std::uint64_t word = 0;
  // The kernel looks at rights before it looks at mappings, and these may be of the program before an execve.
  if (readable != maps.end() && (TargetMemory(pid).read(readable->begin, &word, sizeof word) || errno == EFAULT)) {
    return {};
  }
  return has_ended(pid) || !has_memory(file_text(folder_of(living_thread(pid)) + "/status"))
             ? fail(ErrorCode::not_found, "it has ended")
             : fail(ErrorCode::permission, why_unreadable(pid));
}

bool has_ended(pid_t pid) {
  const std::string status = file_text(folder_of(pid) + "/status");
  return status.empty() || (field(status, "State").starts_with('Z') && number(field(status, "Threads")) <= 1);
}

bool is_stopped(pid_t pid) {
  const std::string state = field(file_text(folder_of(pid) + "/status"), "State");
  return state.starts_with('T') || state.starts_with('t');
}

pid_t living_thread(pid_t pid) {
  if (field(file_text(folder_of(pid) + "/status"), "State").starts_with('Z')) {
    for (const pid_t tid : threads_of(pid)) {
      if (tid != pid) {
        return tid;
      }
    }
  }
  return pid;
}

bool is_there(pid_t pid, pid_t tid) { return ::access(folder_of_thread(pid, tid).c_str(), F_OK) == 0; }

std::vector<pid_t> threads_of(pid_t pid) { return numbers_in(folder_of(pid) + "/task"); }

std::vector<pid_t> threads_of_program(pid_t pid) {
  std::vector<pid_t> threads = threads_of(pid);
  std::erase_if(threads, [&](pid_t tid) { return tid != pid && is_kernel_worker(pid, tid); });
  return threads;
}

std::vector<ChildProcess> children_of(const std::set<pid_t>& parents) {
  std::vector<ChildProcess> children;
  for (const pid_t pid : candidates_for(parents)) {
    const pid_t parent = parent_of(pid);
    if (parents.contains(parent)) {
      children.push_back({pid, parent});
    }
  }
  return children;
}

bool loads_library(pid_t pid) {
  const std::map<std::uint64_t, std::uint64_t> facts = settled_auxiliary_vector(pid);
  const auto is_set = [&](std::uint64_t key) { return facts.contains(key) && facts.at(key) != 0; };
  if (!is_set(AT_BASE)) {
    return false;  // it has no loader
  }
  const std::string wanted = std::string(profile::arena_variable) + "=";
  const std::string environment = '\0' + file_text(folder_of(pid) + "/environ");
  return (!is_set(AT_SECURE) && environment.find('\0' + wanted) != std::string::npos) ||
         file_text(folder_of(pid) + "/maps").find(std::string("/memfd:") + profile::arena_name) != std::string::npos;
}

std::optional<ThreadFacts> thread_facts(pid_t pid, pid_t tid) {
  const std::string folder = folder_of_thread(pid, tid);
  const std::string status = file_text(folder + "/status");
  if (status.empty()) {
    return std::nullopt;
  }
  const std::uint64_t switches =
      number(field(status, "voluntary_ctxt_switches")) + number(field(status, "nonvoluntary_ctxt_switches"));
  return ThreadFacts{field(status, "Name"), switches, cpu_time_of(pid, tid),
                     static_cast<pid_t>(number(field(status, "TracerPid")))};
}

std::uint64_t cpu_time_of(pid_t pid, pid_t tid) { return number(file_text(folder_of_thread(pid, tid) + "/schedstat")); }

std::uint64_t process_cpu_ns(pid_t pid) {
  static const auto ticks_per_s = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  constexpr int user_field = 14;
  constexpr int system_field = 15;
  const std::string text = file_text(folder_of(pid) + "/stat");
  const std::uint64_t user = number(stat_field(text, user_field));
  const std::uint64_t system = number(stat_field(text, system_field));
  return (user + system) * (1'000'000'000 / ticks_per_s);
}

ProcessFacts process_facts(pid_t pid) {
  ProcessFacts facts;
  const pid_t thread = living_thread(pid);
  char path[PATH_MAX];
  const ssize_t length = ::readlink((folder_of(thread) + "/exe").c_str(), path, sizeof path);
  facts.executable = length > 0 ? std::string(path, static_cast<std::size_t>(length)) : std::string();
  constexpr std::string_view deleted = " (deleted)";  // as the kernel says of a file that is not there any more
  if (facts.executable.ends_with(deleted)) {
    facts.executable.resize(facts.executable.size() - deleted.size());
  }
  facts.arguments = arguments_in(file_text(folder_of(thread) + "/cmdline"));
  facts.parent = parent_of(thread);
  return facts;
}

std::vector<std::string> arguments_in(const std::string& line) {
  std::vector<std::string> arguments;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find('\0', at), line.size());
    arguments.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  constexpr std::size_t padding = 2;
  const auto last = std::find_if(arguments.rbegin(), arguments.rend(), [](const auto& word) { return !word.empty(); });
  if (static_cast<std::size_t>(last - arguments.rbegin()) >= padding) {
    arguments.erase(last.base(), arguments.end());
  }
  return arguments;
}

std::vector<Mapping> maps_of(pid_t pid) {
  const std::string maps = file_text(folder_of(pid) + "/maps");
  return parse_maps(maps.empty() ? file_text(folder_of(living_thread(pid)) + "/maps") : maps);
}

}  // namespace crosstalk::observer
