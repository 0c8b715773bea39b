// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_trial.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"
#include "collectors/pmu/counter_groups.h"
#include "collectors/pmu/ibs_module.h"
#include "collectors/probe_system.h"

namespace crosstalk::collectors {
namespace {

constexpr unsigned least_precise = 2;  // less says nothing of the address

struct Opened {
  UniqueFd fd;
  int error = 0;
};

Opened open_one(const perf_event_attr& attr, bool each_cpu, int group) {
  constexpr pid_t own_thread = 0;
  constexpr pid_t any_thread = -1;
  const long fd = ::syscall(SYS_perf_event_open, &attr, each_cpu ? any_thread : own_thread, each_cpu ? 0 : -1, group,
                            PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? Opened{UniqueFd(), errno} : Opened{UniqueFd(static_cast<int>(fd)), 0};
}

/// errno; 0: it can be opened.
int open_whole(const MemoryEvent& event) {
  const Opened leader = event.leader ? open_one(*event.leader, event.each_cpu, -1) : Opened{};
  return leader.error != 0 ? leader.error
                           : open_one(event.attr, event.each_cpu, event.leader ? leader.fd.get() : -1).error;
}

std::string name_of(const MemoryEvent& event) {
  return event.unit.empty() || event.name.find('/') != std::string::npos ? event.name
                                                                         : event.unit + "/" + event.name + "/";
}

/// The highest perf_event_paranoid at which a user may open it.
int paranoid_for(const MemoryEvent& event) { return event.each_cpu ? 0 : event.kernel_excluded ? 2 : 1; }

constexpr const char* seccomp =
    ", by a seccomp filter; start the container with: docker run --security-opt seccomp=unconfined";
constexpr const char* watchdog =
    ", and its NMI watchdog holds a counter (kernel.nmi_watchdog is 1); to free that: sudo sysctl "
    "kernel.nmi_watchdog=0";

/// By errno: settings refuse with EACCES, filters of system calls mostly with EPERM.
std::string why_forbidden(const MemoryEvent& event, int error, const KernelSettings& settings) {
  if (error == EPERM && settings.filtered) {
    return seccomp;
  }
  const std::string found = ", kernel.perf_event_paranoid is " + std::to_string(settings.paranoid);
  const int needed = paranoid_for(event);
  if (settings.paranoid <= needed) {
    return found +
           ", which allows it: a security module or the container does not; see what confines this process "
           "(cat /proc/self/attr/current)";
  }
  const std::string of = event.each_cpu          ? " (it takes the event for processors only)"
                         : event.kernel_excluded ? ""
                                                 : " (it cannot leave out the kernel's part)";
  constexpr int closed = 3;  // to all but CAP_SYS_ADMIN, where distributors have patched the kernel (Debian, Ubuntu)
  return of + found + "; to allow it: sudo sysctl kernel.perf_event_paranoid=" + std::to_string(needed) +
         (settings.paranoid >= closed ? ", or CAP_SYS_ADMIN" : ", or CAP_PERFMON");
}

std::string why_invalid(const MemoryEvent& event) {
  const std::string what = ", the unit does not take it with these terms, precise_ip " +
                           std::to_string(event.attr.precise_ip) + " and period " +
                           std::to_string(event.attr.sample_period);
  return what + (event.unit.empty() ? "; another event may do"
                                    : "; to see its terms: ls /sys/bus/event_source/devices/" + event.unit + "/format");
}

}  // namespace

KernelSettings kernel_settings() {
  KernelSettings settings;
  settings.paranoid = perf_event_paranoid();
  settings.nmi_watchdog = nmi_watchdog_is_on();
  settings.filtered = system_call_filter() == SystemCallFilter::filtered;
  return settings;
}

Error refusal_of(const MemoryEvent& event, int error, const KernelSettings& settings) {
  const std::string what = "the kernel refuses " + name_of(event) + ": " + std::strerror(error);
  const bool is_ibs = event.source == profile::SourceKind::ibs;  // none of its counters is the watchdog's
  switch (error) {
    case EACCES:
    case EPERM:
      return {ErrorCode::permission, what + why_forbidden(event, error, settings)};
    case ENOSYS:
      return {ErrorCode::unsupported, what + (settings.filtered ? seccomp : ", it was built without perf events")};
    case EBUSY:
      return {ErrorCode::system, what + ", the unit is in use; end what else measures with it"};
    case ENOSPC:
      return {ErrorCode::unsupported, what + ", no counter is left for it" +
                                          (settings.nmi_watchdog && !is_ibs ? watchdog : "; end what else measures")};
    case EINVAL:
      return {ErrorCode::unsupported, what + (settings.nmi_watchdog && !is_ibs ? watchdog : why_invalid(event))};
    case ENOENT:
    case ENODEV:
      return {ErrorCode::unsupported, what +
                                          ", it drives no unit here that has this event; a virtual machine needs a "
                                          "host that gives it one (qemu: -cpu host,pmu=on)"};
    case ENODATA:
      return {ErrorCode::unsupported,
              what + ", it wants mem-loads-aux to lead this event's group; name it as UNIT/mem-loads/"};
    case EOPNOTSUPP:
      return {ErrorCode::unsupported, what + ", the unit gives no interrupt, or none as precise as precise_ip " +
                                          std::to_string(event.attr.precise_ip) + "; name it with fewer p"};
    case EMFILE:
      return {ErrorCode::system, what + "; see ulimit -n"};
    default:
      return {ErrorCode::unsupported, what + "; dmesg may say more"};
  }
}

Result<MemoryEvent> try_event(MemoryEvent event) {
  if (event.source == profile::SourceKind::ibs_kmod) {
    const Result<void> tried = try_ibs_module();
    return tried ? Result<MemoryEvent>(std::move(event)) : tl::unexpected<Error>(tried.error());
  }
  if (event.source == profile::SourceKind::ibs && event.each_cpu) {  // by the kernel's version: it may know better
    MemoryEvent of_thread = event;
    of_thread.each_cpu = false;
    if (open_whole(of_thread) == 0) {
      return of_thread;
    }
  }
  int error = open_whole(event);
  while ((error == EINVAL || error == EOPNOTSUPP) && event.attr.precise_ip > least_precise) {
    --event.attr.precise_ip;
    error = open_whole(event);
  }
  if (error == 0) {
    return event;
  }
  return tl::unexpected<Error>(refusal_of(event, error, kernel_settings()));
}

}  // namespace crosstalk::collectors
