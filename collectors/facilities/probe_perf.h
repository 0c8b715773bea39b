// SPDX-License-Identifier: Apache-2.0
// Events that the probe and the calibration open on their own thread, for a moment.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>

#include "base/unique_fd.h"

namespace crosstalk::collectors {

/// A watchpoint on `bytes` (1, 2, 4 or 8) at `address`, user mode only, that raises SIGTRAP in the accessing
/// thread right after each load or store. Disabled until enabled; it holds a debug register from the start.
[[nodiscard]] perf_event_attr watchpoint_attributes(std::uint64_t address, std::uint32_t bytes);

/// A task clock that raises SIGTRAP in its thread every `period_ns` of CPU time. Disabled until enabled.
[[nodiscard]] perf_event_attr task_clock_attributes(std::uint64_t period_ns);

/// Page faults, each of which raises SIGTRAP. Disabled until enabled.
[[nodiscard]] perf_event_attr page_fault_attributes();

struct OpenedEvent {
  UniqueFd fd;
  int error = 0;  // errno of the refusal; 0 when the descriptor is valid
};
/// Opens for one thread (0: the caller) on any processor, close-on-exec.
[[nodiscard]] OpenedEvent open_event(const perf_event_attr& attributes, pid_t thread = 0);

/// Debug registers that this thread could have now, found by opening until refused: 0..4.
/// `error` gets the errno of the refusal that came before the fourth, 0 when there was none.
[[nodiscard]] std::uint32_t count_debug_registers(int& error);

/// True if the test switch is on (breakpoint_address.h): the recorder's watchpoints, apart from its self-test, never
/// report.
[[nodiscard]] bool watchpoints_led_astray();

}  // namespace crosstalk::collectors
