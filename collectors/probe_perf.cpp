// SPDX-License-Identifier: Apache-2.0
#include "collectors/probe_perf.h"

#include <linux/hw_breakpoint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace crosstalk::collectors {

namespace {

perf_event_attr user_mode_event() {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.sigtrap = 1;
  attributes.remove_on_exec = 1;  // the kernel wants it together with sigtrap
  return attributes;
}

}  // namespace

perf_event_attr watchpoint_attributes(std::uint64_t address, std::uint32_t bytes) {
  perf_event_attr attributes = user_mode_event();
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_RW;
  attributes.bp_addr = address;
  attributes.bp_len = bytes;
  attributes.sample_period = 1;
  return attributes;
}

perf_event_attr task_clock_attributes(std::uint64_t period_ns) {
  perf_event_attr attributes = user_mode_event();
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.sample_period = period_ns;
  return attributes;
}

OpenedEvent open_event(const perf_event_attr& attributes, pid_t thread) {
  const long fd = ::syscall(SYS_perf_event_open, &attributes, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) {
    return OpenedEvent{UniqueFd(), errno};
  }
  return OpenedEvent{UniqueFd(static_cast<int>(fd)), 0};
}

std::uint32_t count_debug_registers(int& error) {
  alignas(8) static std::uint64_t watched = 0;  // never touched while an event is enabled
  constexpr std::size_t most = 4;               // DR0..DR3
  std::array<OpenedEvent, most> opened;
  error = 0;
  for (std::uint32_t i = 0; i < most; ++i) {
    opened[i] = open_event(watchpoint_attributes(reinterpret_cast<std::uint64_t>(&watched), 8));
    if (!opened[i].fd.valid()) {
      error = opened[i].error;
      return i;
    }
  }
  return most;
}

// Counted only: no signal is sent.
bool watchpoints_fire() {
  alignas(8) static volatile std::uint64_t watched = 0;
  perf_event_attr attributes = watchpoint_attributes(reinterpret_cast<std::uint64_t>(&watched), 8);
  attributes.sigtrap = 0;
  attributes.remove_on_exec = 0;
  attributes.sample_period = 0;
  attributes.disabled = 0;
  const OpenedEvent event = open_event(attributes);
  watched = watched + 1;
  std::uint64_t count = 0;
  return event.fd.valid() && ::read(event.fd.get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count) &&
         count != 0;
}

bool blocked_trap_kills() {
  const pid_t child = ::fork();
  if (child == 0) {
    alignas(8) static volatile std::uint64_t watched = 0;
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    sigset_t trap;
    sigemptyset(&trap);
    sigaddset(&trap, SIGTRAP);
    ::sigprocmask(SIG_BLOCK, &trap, nullptr);
    perf_event_attr attributes = watchpoint_attributes(reinterpret_cast<std::uint64_t>(&watched), 8);
    attributes.disabled = 0;
    const OpenedEvent event = open_event(attributes);
    watched = 1;
    ::_exit(0);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP;
}

}  // namespace crosstalk::collectors
