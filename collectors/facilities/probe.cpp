// SPDX-License-Identifier: Apache-2.0
#include "collectors/facilities/probe.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "collectors/facilities/probe_perf.h"
#include "collectors/facilities/probe_pmu.h"
#include "collectors/facilities/surroundings.h"
#include "collectors/facilities/watchpoint_trial.h"
#include "collectors/pmu/event_trial.h"
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

/// Explains why perf_event_open refused, and how to make it succeed.
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

/// Watchpoints that do not fire have their cause outside of this system, if any is known.
void add_cause(profile::WatchTrial& trial) {
  const Surroundings around = surroundings();
  const bool whole = trial.verdict == profile::TrialVerdict::never;
  const std::string cause = cause_of_silence(around, whole ? Silence::whole : Silence::in_part);
  trial.why += cause.empty() ? "" : ": " + cause;
  trial.remedy = remedy_of_silence(around);
}

/// Explains watchpoints that cannot be opened.
void explain_refusal_of_watchpoints(int error, int paranoid, SystemCallFilter filter, profile::WatchTrial& trial) {
  Facility facility;
  if (error == ENOSPC) {
    facility.found = "all debug registers are in use";
    facility.remedy = "end the debugger or tracer that watches this process";
  } else {
    explain_refusal(error, paranoid, filter, facility);
    if (facility.remedy.empty()) {  // a kernel that has none to give
      const Surroundings around = surroundings();
      const std::string cause = around.sandbox.empty() ? "" : cause_of_silence(around, Silence::whole);
      facility.found += cause.empty() ? "" : ": " + cause;
      facility.remedy = around.sandbox.empty() ? "" : remedy_of_silence(around);
    }
  }
  trial.why = facility.found;
  trial.remedy = facility.remedy;
}

/// Tries watchpoints, and finds out why they fail.
profile::WatchTrial watch_trial(int paranoid, SystemCallFilter filter) {
  int error = 0;
  const std::uint32_t registers = count_debug_registers(error);
  TrialOutcome tried = try_watchpoints();
  profile::WatchTrial& trial = tried.trial;
  if (registers == 0) {  // not with a signal, which targets need, even if others are possible
    trial = {};
    trial.verdict = profile::TrialVerdict::not_opened;
    tried.open_error = error;
  }
  trial.registers = registers;
  switch (trial.verdict) {
    case profile::TrialVerdict::never:
    case profile::TrialVerdict::partly:
      add_cause(trial);
      break;
    case profile::TrialVerdict::not_opened:
      explain_refusal_of_watchpoints(tried.open_error, paranoid, filter, trial);
      break;
    case profile::TrialVerdict::untestable:
      trial.why = "cannot be tested: " + trial.why;
      break;
    case profile::TrialVerdict::fires:
    case profile::TrialVerdict::unknown:
      break;
  }
  return trial;
}

// Both send SIGTRAP, which a program may block at any time.
void refuse_traps(Probe& result, Facility& clock) {
  clock.available = false;
  clock.found = "Linux " + kernel_release() + " kills programs that get a signal of perf while they block SIGTRAP";
  clock.remedy = "Linux 5.19 or newer";
  result.watch_trial.verdict = profile::TrialVerdict::not_opened;
  result.watch_trial.why = clock.found;
  result.watch_trial.remedy = clock.remedy;
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

/// Line probes read memory by this call, which cannot fault. Checks that it gives the memory's value, before a store
/// and after it.
Facility line_probe_facility(SystemCallFilter filter) {
  Facility facility{"line probes", false, "", ""};
  std::array<std::uint64_t, 8> line{};
  std::array<std::uint64_t, 8> seen{};
  const iovec to{seen.data(), sizeof seen};
  const iovec from{line.data(), sizeof line};
  for (const std::uint64_t value : {0x0123456789abcdefULL, 0xfedcba9876543210ULL}) {
    line.fill(value);
    asm volatile("" ::: "memory");
    const ssize_t bytes = ::process_vm_readv(::getpid(), &to, 1, &from, 1, 0);
    if (bytes != static_cast<ssize_t>(sizeof seen) || seen != line) {
      facility.found =
          std::string("process_vm_readv: ") + (bytes < 0 ? std::strerror(errno) : "it reads something else");
      facility.found += bytes < 0 && filter == SystemCallFilter::filtered ? ", by a seccomp filter" : "";
      return facility;
    }
  }
  facility.available = true;
  facility.found = "process_vm_readv reads what threads store";
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

Facility watchpoint_facility(const profile::WatchTrial& trial) {
  const std::string free = std::to_string(trial.registers) + " of 4 debug registers free";
  if (trial.verdict == profile::TrialVerdict::fires) {
    return {"watchpoints", true, free + ", and they fire", ""};
  }
  if (profile::is_worth_arming(trial)) {
    return {"watchpoints", true, free + ", but " + trial.why, ""};
  }
  return {"watchpoints", false, trial.why, trial.remedy};
}

void take_verdict(Probe& probe) {
  probe.watchpoints_allowed = profile::is_worth_arming(probe.watch_trial);
  probe.watchpoints_inside = probe.watchpoints_allowed && (probe.watch_trial.silent & profile::trial_sigtrap) == 0;
  probe.debug_registers = probe.watchpoints_allowed ? probe.watch_trial.registers : 0;
}

Probe probe() {
  Probe result;
  result.paranoid = perf_event_paranoid();
  const SystemCallFilter filter = system_call_filter();

  result.facilities.push_back(kernel_facility());
  Facility clock = task_clock_facility(result.paranoid, filter);
  result.watch_trial = watch_trial(result.paranoid, filter);
  if ((clock.available || profile::is_worth_arming(result.watch_trial)) && blocked_traps_kill()) {
    refuse_traps(result, clock);
  }
  result.perf_allowed = clock.available;
  take_verdict(result);
  result.facilities.push_back(watchpoint_facility(result.watch_trial));
  result.facilities.push_back(line_probe_facility(filter));
  result.facilities.push_back(clock);
  result.facilities.push_back(timer_facility());
  result.facilities.push_back(filter_facility(filter));
  return result;
}

std::vector<Facility> units_here() {
  const MachineDescription machine = describe_machine();
  const bool has_core = std::any_of(machine.units.begin(), machine.units.end(),
                                    [](const PmuUnit& unit) { return is_core_unit(unit.name); });
  // libpfm4's detection costs milliseconds, and finds nothing if there is no unit.
  const auto core_pmus = has_core ? detected_core_pmus() : std::vector<std::string>{};
  return pmu_facilities(machine, core_pmus, try_event);
}

const Facility* facility_of(const Probe& probe, const std::string& name) {
  const auto found = std::find_if(probe.facilities.begin(), probe.facilities.end(),
                                  [&](const Facility& facility) { return facility.name == name; });
  return found == probe.facilities.end() ? nullptr : &*found;
}

}  // namespace crosstalk::collectors
