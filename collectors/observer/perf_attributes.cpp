// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/perf_attributes.h"

#include <linux/hw_breakpoint.h>

#include <ctime>

namespace crosstalk::observer {
namespace {

perf_event_attr common_attributes() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.disabled = 1;
  attributes.exclude_hv = 1;
  attributes.sample_type = sample_fields;
  attributes.sample_regs_user = sampled_registers;
  attributes.use_clockid = 1;  // events of one ring must have the same clock; ours is that of all records
  attributes.clockid = CLOCK_MONOTONIC;
  return attributes;
}

}  // namespace

perf_event_attr clock_attributes(const ClockSettings& settings) {
  perf_event_attr attributes = common_attributes();
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.sample_period = settings.period_ns;
  attributes.sample_stack_user = clock_stack_bytes;
  attributes.exclude_kernel = settings.with_kernel ? 0 : 1;
  attributes.watermark = 1;  // else only samples would wake, and not the records of new threads and processes
  attributes.wakeup_watermark = settings.wakeup_bytes;
  attributes.task = 1;
  attributes.mmap = 1;
  attributes.comm = 1;
  attributes.comm_exec = 1;
  return attributes;
}

perf_event_attr watch_attributes(const WatchedPlace& place) {
  perf_event_attr attributes = common_attributes();
  attributes.type = PERF_TYPE_BREAKPOINT;
  attributes.bp_addr = place.address;
  attributes.bp_len = place.length;
  attributes.bp_type = place.mode == watch_policy::WatchMode::write_only ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW;
  attributes.sample_period = 1;
  attributes.sample_stack_user = watch_stack_bytes;
  attributes.wakeup_events = 1;
  attributes.exclude_kernel = 1;
  return attributes;
}

SampleLayout layout_of(const collectors::MemoryEvent& event) {
  constexpr std::uint64_t more =
      PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
  return {event.attr.sample_type | more, true};
}

perf_event_attr measuring_attributes(const collectors::MemoryEvent& event, std::uint64_t period) {
  perf_event_attr attributes = event.attr;
  attributes.sample_period = period;
  attributes.sample_type = layout_of(event).fields;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attributes.sample_regs_user = sampled_registers;
  attributes.sample_stack_user = watch_stack_bytes;
  attributes.wakeup_events = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  return attributes;
}

perf_event_attr leading_attributes(const collectors::MemoryEvent& event) {
  perf_event_attr attributes = *event.leader;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  return attributes;
}

}  // namespace crosstalk::observer
