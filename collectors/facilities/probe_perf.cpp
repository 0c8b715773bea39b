// SPDX-License-Identifier: Apache-2.0
#include "collectors/facilities/probe_perf.h"

#include <linux/hw_breakpoint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "collectors/breakpoint_address.h"

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

const char* dead_watchpoints() { return std::getenv(dead_watchpoints_variable); }

bool are_dead_at_once() {
  const char* const wish = dead_watchpoints();
  return wish != nullptr && std::strcmp(wish, "later") != 0;
}

}  // namespace

perf_event_attr watchpoint_attributes(std::uint64_t address, std::uint32_t bytes) {
  perf_event_attr attributes = user_mode_event();
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_type = HW_BREAKPOINT_RW;
  attributes.bp_addr = breakpoint_address(address, are_dead_at_once());
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

perf_event_attr page_fault_attributes() {
  perf_event_attr attributes = user_mode_event();
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_PAGE_FAULTS;
  attributes.sample_period = 1;
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

bool watchpoints_led_astray() { return dead_watchpoints() != nullptr; }

}  // namespace crosstalk::collectors
