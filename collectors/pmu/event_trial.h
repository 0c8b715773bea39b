// SPDX-License-Identifier: Apache-2.0
// Tries if the kernel lets this user open an event, here and now.
#pragma once

#include <string>

#include "base/result.h"
#include "collectors/pmu/memory_events.h"

namespace crosstalk::collectors {

/// Opens the event, with its leader, for this thread or for a processor, and closes it again. If the kernel refuses its
/// precision, tries lower ones, down to 2. An error has cause, value and remedy in one line.
[[nodiscard]] Result<MemoryEvent> try_event(MemoryEvent event);

/// The kernel's settings that refusals depend on.
struct KernelSettings {
  int paranoid = -1;          // kernel.perf_event_paranoid; -1: not there
  bool nmi_watchdog = false;  // takes a counter of each processor
  bool filtered = false;      // a seccomp filter is on this process
};
[[nodiscard]] KernelSettings kernel_settings();
/// Returns why the kernel has refused the event with `error` (errno), the value found, and the remedy. Pure.
[[nodiscard]] Error refusal_of(const MemoryEvent& event, int error, const KernelSettings& settings);

}  // namespace crosstalk::collectors
