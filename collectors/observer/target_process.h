// SPDX-License-Identifier: Apache-2.0
// A process that is watched from outside: /proc's data on it, its memory as the kernel reads it for us, and its
// modules. Nothing here changes anything in it.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/observer/process_maps.h"
#include "profile/records.h"

namespace crosstalk::observer {

/// The memory of a process (process_vm_readv): any address is safe, and what cannot be read is not. Not thread-safe.
class TargetMemory {
 public:
  explicit TargetMemory(pid_t pid) : pid_(pid), through_(pid) {}
  /// All of the bytes, or false with `out` in any state.
  bool read(std::uint64_t address, void* out, std::size_t bytes) const;
  /// The process, or a thread of it that lives.
  [[nodiscard]] pid_t pid() const { return through_; }

 private:
  pid_t pid_;
  mutable pid_t through_;  // a thread that has it: the first one, as long as that lives
};

/// Refuses, in one line, a process that cannot be watched: there is none of that id, a thread's id, a zombie, a
/// kernel thread, ourselves, or one whose memory this user may not read.
[[nodiscard]] Result<void> check_process(pid_t pid);

/// Checks the right to read the process's memory, of which `maps` are the mappings; mappings that went away meanwhile
/// do no harm. Errors: not_found (it has ended), permission, with the remedy.
[[nodiscard]] Result<void> check_memory(pid_t pid, const std::vector<Mapping>& maps);

/// True if the process has ended, even if its parent has not waited for it yet.
[[nodiscard]] bool has_ended(pid_t pid);
/// True if it is stopped, by a signal or by its tracer.
[[nodiscard]] bool is_stopped(pid_t pid);

/// True if there is such a thread. Needs no descriptor.
[[nodiscard]] bool is_there(pid_t pid, pid_t tid);

/// Returns the first thread, or if that has ended before the others, one of those: through it the kernel shows the
/// process's resources.
[[nodiscard]] pid_t living_thread(pid_t pid);

/// The thread's folder in /proc.
[[nodiscard]] std::string folder_of_thread(pid_t pid, pid_t tid);

/// The ids of its threads; empty: it is gone.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t pid);
/// Returns the threads that execute the program: not those in which the kernel works on its behalf (io_uring, vhost).
[[nodiscard]] std::vector<pid_t> threads_of_program(pid_t pid);

struct ChildProcess {
  pid_t pid = 0, parent = 0;
};
/// Returns the processes whose parent is one of `parents`; children of those are not included.
[[nodiscard]] std::vector<ChildProcess> children_of(const std::set<pid_t>& parents);

/// True if the process has loaded the library of a recorder, or is about to: its environment says so, and it has a
/// loader that heeds that.
[[nodiscard]] bool loads_library(pid_t pid);

struct ThreadFacts {
  std::string name;
  std::uint64_t switches = 0;  // context switches of its whole life
  std::uint64_t cpu_ns = 0;    // CPU time of its whole life; 0: not known
  pid_t tracer = 0;            // the process that traces it (a debugger, strace); 0: none that we can see
};
/// Nothing: there is no such thread any more.
[[nodiscard]] std::optional<ThreadFacts> thread_facts(pid_t pid, pid_t tid);

/// CPU time of the thread's life; 0: not known.
[[nodiscard]] std::uint64_t cpu_time_of(pid_t pid, pid_t tid);

/// CPU time of the process with all its threads, past ones included, by ticks of the kernel; 0: it is gone.
[[nodiscard]] std::uint64_t process_cpu_ns(pid_t pid);

struct ProcessFacts {
  std::string executable;              // the file; empty: not known
  std::vector<std::string> arguments;  // its command line
  pid_t parent = 0;
};
[[nodiscard]] ProcessFacts process_facts(pid_t pid);
/// The words of a file /proc/.../cmdline. A program that has written a title over its arguments (servers do) has left
/// zeros behind it: two empty words or more at the end are none.
[[nodiscard]] std::vector<std::string> arguments_in(const std::string& line);

[[nodiscard]] std::vector<Mapping> maps_of(pid_t pid);

/// A program or library in memory. The record has no time yet.
struct TargetModule {
  profile::ModuleLoad record;
  std::string path;  // empty of the vdso
};
/// The modules among the mappings of a process, read off their headers in its memory.
[[nodiscard]] std::vector<TargetModule> modules_of(const std::vector<Mapping>& maps, const TargetMemory& memory);
/// The mappings of files' code that lie in none of these modules: the program has mapped them itself, often a second
/// time.
[[nodiscard]] std::vector<TargetModule> parts_of(const std::vector<Mapping>& maps,
                                                 const std::vector<TargetModule>& modules);

}  // namespace crosstalk::observer
