// SPDX-License-Identifier: Apache-2.0
#include "collectors/probe.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "collectors/pmu/event_trial.h"
#include "collectors/probe_perf.h"
#include "collectors/probe_pmu.h"
#include "collectors/probe_system.h"

namespace crosstalk::collectors {

namespace {

constexpr std::uint64_t probe_period_ns = 1'000'000'000;  // never comes while the probe runs

Facility kernel_facility() {
  const std::string release = kernel_release();
  const auto version = parse_kernel_release(release);
  Facility facility{"kernel", version && *version >= oldest_kernel, "Linux " + release, ""};
  if (!facility.available) {
    facility.remedy = "Linux 5.13 or newer";
  }
  return facility;
}

/// Why perf_event_open said no, and what would make it say yes.
void explain_refusal(int error, int paranoid, SystemCallFilter filter, Facility& facility) {
  facility.found = std::string("perf_event_open: ") + std::strerror(error);
  if (paranoid >= 3 && (error == EACCES || error == EPERM)) {
    facility.found += ", kernel.perf_event_paranoid is " + std::to_string(paranoid);
    facility.remedy = "sudo sysctl kernel.perf_event_paranoid=2";
  } else if (error == EPERM || (error == ENOSYS && filter == SystemCallFilter::filtered)) {
    facility.found += filter == SystemCallFilter::filtered ? ", by a seccomp filter" : "";
    facility.remedy = filter == SystemCallFilter::filtered
                          ? "start the container with: docker run --security-opt seccomp=unconfined"
                          : "sudo sysctl kernel.perf_event_paranoid=2";
  } else if (error == ENOSYS || paranoid < 0) {
    facility.found += ", the kernel was built without perf events";
  }
}

Facility task_clock_facility(int paranoid, SystemCallFilter filter) {
  Facility facility{"perf task-clock", false, "", ""};
  const OpenedEvent event = open_event(task_clock_attributes(probe_period_ns));
  facility.available = event.fd.valid();
  if (facility.available) {
    facility.found = paranoid < 0 ? "allowed" : "allowed, kernel.perf_event_paranoid is " + std::to_string(paranoid);
  } else {
    explain_refusal(event.error, paranoid, filter, facility);
  }
  return facility;
}

Facility watchpoint_facility(int paranoid, SystemCallFilter filter, std::uint32_t& registers) {
  Facility facility{"watchpoints", false, "", ""};
  int error = 0;
  registers = count_debug_registers(error);
  facility.available = registers > 0;
  if (registers > 0 && !watchpoints_fire()) {
    registers = 0;
    facility.available = false;
    facility.found = "they can be set, but accesses to a watched word are not reported";
    facility.remedy = "record where the host of this virtual machine passes debug exceptions on";
  } else if (registers > 0) {
    facility.found = std::to_string(registers) + " of 4 debug registers free";
  } else if (error == ENOSPC) {
    facility.found = "all debug registers are in use";
    facility.remedy = "end the debugger or tracer that watches this process";
  } else {
    explain_refusal(error, paranoid, filter, facility);
  }
  return facility;
}

// Both send SIGTRAP, which a program may block at any time.
void refuse_traps(Facility& facility) {
  facility.available = false;
  facility.found = "Linux " + kernel_release() + " kills programs that get one while they block SIGTRAP";
  facility.remedy = "Linux 5.19 or newer";
}

Facility timer_facility() {
  Facility facility{"POSIX timer", false, "", ""};
  sigevent event{};
  event.sigev_notify = SIGEV_NONE;
  timer_t timer{};
  facility.available = ::timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) == 0;
  if (!facility.available) {
    facility.found = std::string("timer_create: ") + std::strerror(errno);
    return facility;
  }
  ::timer_delete(timer);
  facility.found = "thread CPU timers";
  timespec tick{};  // CPU timers expire at the kernel's tick
  if (::clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0 && tick.tv_sec == 0 && tick.tv_nsec > 0) {
    facility.found += ", " + std::to_string(1'000'000'000 / tick.tv_nsec) + " Hz at best";
  }
  return facility;
}

Facility filter_facility(SystemCallFilter filter) {
  switch (filter) {
    case SystemCallFilter::none:
      return {"system calls", true, "no seccomp filter", ""};
    case SystemCallFilter::filtered:
      return {"system calls", false, "a seccomp filter is on this process", ""};
    case SystemCallFilter::unknown:
      break;
  }
  return {"system calls", false, "/proc/self/status does not say", ""};
}

}  // namespace

Probe probe() {
  Probe result;
  result.paranoid = perf_event_paranoid();
  const SystemCallFilter filter = system_call_filter();

  result.facilities.push_back(kernel_facility());
  Facility clock = task_clock_facility(result.paranoid, filter);
  Facility watchpoints = watchpoint_facility(result.paranoid, filter, result.debug_registers);
  if (watchpoints.available && blocked_trap_kills()) {
    refuse_traps(watchpoints);
    refuse_traps(clock);
    result.debug_registers = 0;
  }
  result.perf_allowed = clock.available;
  result.watchpoints_allowed = watchpoints.available;
  result.facilities.push_back(watchpoints);
  result.facilities.push_back(clock);
  result.facilities.push_back(timer_facility());
  result.facilities.push_back(filter_facility(filter));
  const MachineDescription machine = describe_machine();
  const bool has_core = std::any_of(machine.units.begin(), machine.units.end(),
                                    [](const PmuUnit& unit) { return is_core_unit(unit.name); });
  // libpfm4's detection costs milliseconds, and has nothing to say where there is no unit.
  const auto core_pmus = has_core ? detected_core_pmus() : std::vector<std::string>{};
  for (Facility& facility : pmu_facilities(machine, core_pmus, try_event)) {
    result.facilities.push_back(std::move(facility));
  }
  return result;
}

}  // namespace crosstalk::collectors
