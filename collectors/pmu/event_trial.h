// SPDX-License-Identifier: Apache-2.0
// Tries if the kernel lets this user open an event, here and now, and if it then counts and samples.
#pragma once

#include <string>

#include "base/result.h"
#include "collectors/pmu/memory_events.h"

namespace crosstalk::collectors {

/// Opens the event, with its leader, for this thread or for a processor, tests it (event_self_test.h), and closes it
/// again. If the kernel refuses its precision, tries lower ones, down to 2. An error has cause, value and remedy in one
/// line.
[[nodiscard]] Result<MemoryEvent> try_event(MemoryEvent event);

/// Returns the event as its self-test opens it: with a short period, and without a least latency, which no load may
/// reach. Pure.
[[nodiscard]] MemoryEvent for_self_test(MemoryEvent event);
/// True if the self-test's work makes what the event counts; else it may rightly stay at 0. Pure.
[[nodiscard]] bool surely_happens(const MemoryEvent& event);

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
