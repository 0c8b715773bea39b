// SPDX-License-Identifier: Apache-2.0
// Reads /proc's status of a process and of its threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

struct TaskStatus {
  std::int32_t tracer = 0;                 // the process that traces it; 0: none
  std::uint64_t signals_queued = 0;        // of all processes of the user
  std::uint64_t pending = 0, blocked = 0;  // signals of the thread: bit number - 1
  bool runnable = false;                   // it runs, or waits for nothing but a processor
  std::uint32_t seccomp = 0;               // 0: none, 1: strict, 2: filtered
  std::uint32_t seccomp_filters = 0;       // 0 too before Linux 5.9, which does not say
};

/// Takes a known field from a line of /proc/PID/status.
void parse_status_line(const char* line, std::size_t length, TaskStatus& status);
/// Reads the status of the process's first thread (`tid` 0), or of one thread of this process. False: there is no such
/// thread, or no /proc. Signal-safe; some 30 us.
bool read_task_status(std::int32_t tid, TaskStatus& status);
/// Does the same for another process.
bool read_process_status(std::int32_t pid, TaskStatus& status);

/// The kernel's flags of a thread in a line of /proc/PID/stat; 0 when it is none.
std::uint32_t parse_task_flags(const char* line, std::size_t length);
/// A thread that never runs the program's code (any more): the kernel has made it for its own work (io_uring), or it is
/// about to be gone, as a first thread is that has left the others. Signal-safe.
bool runs_no_code(std::int32_t tid);

}  // namespace crosstalk::in_target
