// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/process_start.h"

#include <fcntl.h>
#include <sys/resource.h>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/objects/module_facts.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/signals/alternate_stack.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/threads.h"

// The dynamic loader's note of where the main thread's stack began.
extern "C" void* __libc_stack_end;  // NOLINT(bugprone-reserved-identifier)

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t largest_stack = 1ULL << 30U;

// The tail of a process_start: the executable's path, NUL, and the command line as the kernel has it.
std::size_t describe_process(char* out, std::size_t capacity) {
  constexpr std::size_t path_limit = 1024;
  std::size_t used = modules::program_path(out, path_limit - 1);
  out[used++] = 0;
  const long fd = system_call(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    const long got = system_call(SYS_read, fd, out + used, capacity - used);
    used += got > 0 ? static_cast<std::size_t>(got) : 0;
    system_call(SYS_close, fd);
  }
  return used;
}

}  // namespace

void write_process_start(bool after_fork) {
  char tail[4096];
  profile::ProcessStart record;
  record.header.type = profile::RecordType::process_start;
  record.time_ns = monotonic_ns();
  record.pid = runtime().pid;
  record.parent_pid = static_cast<std::int32_t>(system_call(SYS_getppid));
  record.after_fork = after_fork ? 1 : 0;
  record.registers_free = runtime().config.watchpoints_allowed != 0 ? runtime().config.watchpoints : 0;
  record.observation = runtime().injected ? profile::Observation::injected : profile::Observation::preloaded;
  emit(&record, sizeof record, tail, describe_process(tail, sizeof tail));
}

ThreadState* begin_main_thread() {
  const auto high = reinterpret_cast<std::uint64_t>(__libc_stack_end);
  rlimit64 limit{};
  system_call(SYS_prlimit64, 0, RLIMIT_STACK, nullptr, &limit);
  const std::uint64_t bytes = limit.rlim_cur < largest_stack ? limit.rlim_cur : largest_stack;
  return begin_thread(high - bytes, high, fs_base());
}

bool begin_observing(bool after_fork) {
  Runtime& r = runtime();
  r.pid = kernel_process_id();
  raise_limits_in(r.pid);
  mend_inherited_limit();
  ThreadState* self = begin_main_thread();
  if (self == nullptr) {
    return false;
  }
  write_process_start(after_fork);
  self->handler_stack = lend_handler_stack();
  r.observing.store(true, std::memory_order_release);
  start_clock(*self);
  return true;
}

void count_start(std::uint64_t begin_ns) {
  if (const ThreadState* self = current_thread(); self != nullptr) {
    self->slot->handlers_ns.fetch_add(thread_cpu_ns() - begin_ns, std::memory_order_relaxed);
  }
}

}  // namespace crosstalk::in_target
