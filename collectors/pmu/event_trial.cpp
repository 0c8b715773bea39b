// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_trial.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/unique_fd.h"
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

}  // namespace

Error refusal_of(const MemoryEvent& event, int error, const KernelSettings& settings) {
  const std::string what = "the kernel refuses " + name_of(event) + ": " + std::strerror(error);
  switch (error) {
    case EACCES:
    case EPERM: {
      const std::string of = event.each_cpu          ? " (it takes the event for processors only)"
                             : event.kernel_excluded ? ""
                                                     : " (it can not leave out the kernel's part)";
      return {ErrorCode::permission,
              what + of + ", kernel.perf_event_paranoid is " + std::to_string(settings.paranoid) +
                  "; to allow it: sudo sysctl kernel.perf_event_paranoid=" + std::to_string(paranoid_for(event)) +
                  ", or CAP_PERFMON"};
    }
    case EBUSY:
      return {ErrorCode::system, what + ", the unit is in use; end what else measures with it"};
    case EINVAL:
    case ENOSPC:
      return {ErrorCode::unsupported,
              what + (settings.nmi_watchdog
                          ? ", and its NMI watchdog holds a counter; to free that: sudo sysctl kernel.nmi_watchdog=0"
                          : "")};
    case EMFILE:
      return {ErrorCode::system, what + "; see ulimit -n"};
    default:
      return {ErrorCode::unsupported, what};
  }
}

Result<MemoryEvent> try_event(MemoryEvent event) {
  if (event.source == profile::SourceKind::ibs_kmod) {
    const Result<void> tried = try_ibs_module();
    return tried ? Result<MemoryEvent>(std::move(event)) : tl::unexpected<Error>(tried.error());
  }
  int error = open_whole(event);
  while ((error == EINVAL || error == EOPNOTSUPP) && event.attr.precise_ip > least_precise) {
    --event.attr.precise_ip;
    error = open_whole(event);
  }
  if (error == 0) {
    return event;
  }
  KernelSettings settings;
  settings.paranoid = perf_event_paranoid();
  settings.nmi_watchdog = read_small_file("/proc/sys/kernel/nmi_watchdog").value_or("0") == "1";
  return tl::unexpected<Error>(refusal_of(event, error, settings));
}

}  // namespace crosstalk::collectors
