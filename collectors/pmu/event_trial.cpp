// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_trial.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "base/cpu_list.h"
#include "base/unique_fd.h"
#include "collectors/pmu/counter_groups.h"
#include "collectors/pmu/event_self_test.h"
#include "collectors/pmu/ibs_module.h"
#include "collectors/probe_system.h"

namespace crosstalk::collectors {
namespace {

constexpr unsigned least_precise = 2;  // less says nothing of the address

struct Opened {
  UniqueFd leader, event;
  int error = 0;  // errno; 0: it was opened
};

/// `cpu`: of an event that takes processors only.
int open_one(const perf_event_attr& attr, bool each_cpu, int cpu, int group, UniqueFd& fd) {
  constexpr pid_t own_thread = 0;
  constexpr pid_t any_thread = -1;
  fd = UniqueFd(static_cast<int>(::syscall(SYS_perf_event_open, &attr, each_cpu ? any_thread : own_thread,
                                           each_cpu ? cpu : -1, group, PERF_FLAG_FD_CLOEXEC)));
  return fd.valid() ? 0 : errno;
}

Opened open_whole(const MemoryEvent& event, int cpu = 0) {
  Opened opened;
  opened.error = event.leader ? open_one(*event.leader, event.each_cpu, cpu, -1, opened.leader) : 0;
  if (opened.error == 0) {
    opened.error = open_one(event.attr, event.each_cpu, cpu, opened.leader.get(), opened.event);
  }
  return opened;
}

/// Keeps the calling thread on one processor of those that are given and that it may use.
class OnProcessor {
 public:
  /// No `cpus`: one of all.
  explicit OnProcessor(const std::vector<std::uint32_t>& cpus) {
    CPU_ZERO(&before_);
    if (::sched_getaffinity(0, sizeof before_, &before_) != 0) {
      return;
    }
    for (std::size_t cpu = 0; cpu < CPU_SETSIZE && cpu_ < 0; ++cpu) {
      if (CPU_ISSET(cpu, &before_) && (cpus.empty() || std::find(cpus.begin(), cpus.end(), cpu) != cpus.end())) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        cpu_ = ::sched_setaffinity(0, sizeof one, &one) == 0 ? static_cast<int>(cpu) : -1;
      }
    }
  }
  OnProcessor(const OnProcessor&) = delete;
  OnProcessor& operator=(const OnProcessor&) = delete;
  ~OnProcessor() {
    if (cpu_ >= 0) {
      ::sched_setaffinity(0, sizeof before_, &before_);
    }
  }
  /// -1: it may use none of them.
  [[nodiscard]] int cpu() const { return cpu_; }

 private:
  cpu_set_t before_;
  int cpu_ = -1;
};

/// Returns the processors that have the unit; empty: all.
std::vector<std::uint32_t> cpus_of(const MemoryEvent& event) {
  return cpus_in(read_small_file("/sys/bus/event_source/devices/" + event.unit + "/cpus").value_or(""));
}

std::string name_of(const MemoryEvent& event) {
  if (event.unit.empty() || event.name.find('/') != std::string::npos) {
    return event.name;
  }
  return event.unit + "/" + (event.name == event.unit ? "" : event.name) + "/";
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

/// An event of one kind of core counts there only.
Result<void> self_test(const MemoryEvent& event) {
  const std::vector<std::uint32_t> cpus = cpus_of(event);
  if (event.source == profile::SourceKind::ibs && event.weight_unit == profile::WeightUnit::occurrences) {
    return {};  // the processor may discard all samples: its filter lets those of slow loads pass
  }
  std::optional<OnProcessor> place;
  if (event.each_cpu || !cpus.empty()) {
    place.emplace(cpus);
    if (place->cpu() < 0) {
      return {};  // nothing that is started here ever runs there
    }
  }
  const MemoryEvent tested = for_self_test(event);
  const Opened opened = open_whole(tested, place ? place->cpu() : 0);
  if (opened.error != 0) {
    return tl::unexpected<Error>(refusal_of(tested, opened.error, kernel_settings()));
  }
  const int own = opened.event.get();
  const OpenGroup group{event.leader ? opened.leader.get() : own, own, event.leader ? 1U : 0U};
  const SelfTestFindings findings = test_event(group, tested.attr.sample_period);
  const SelfTestVerdict verdict = judge_self_test(findings);
  if (verdict == SelfTestVerdict::samples || (verdict != SelfTestVerdict::counts_only && !surely_happens(event))) {
    return {};
  }
  return tl::unexpected<Error>(self_test_refusal(name_of(event), findings, watchdog_competes(event.source)));
}

}  // namespace

MemoryEvent for_self_test(MemoryEvent event) {
  constexpr std::uint64_t threshold = 0xffff;  // its bits in config1
  perf_event_attr& attr = event.attr;
  attr.sample_period = std::min<std::uint64_t>(attr.sample_period, longest_tested_period);
  attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  if (event.source == profile::SourceKind::pebs && intel_least_latency(attr.config, attr.config1) > every_load) {
    attr.config1 = (attr.config1 & ~threshold) | every_load;
  }
  return event;
}

bool surely_happens(const MemoryEvent& event) {
  // Bits that say whether to count at all, and in which modes.
  constexpr std::uint64_t modes = 0x530000;
  const auto is_one_of = [config = event.attr.config & ~modes](std::initializer_list<std::uint64_t> known) {
    return std::find(known.begin(), known.end(), config) != known.end();
  };
  switch (event.source) {
    case profile::SourceKind::ibs:
    case profile::SourceKind::ibs_kmod:
      return event.weight_unit != profile::WeightUnit::occurrences;
    case profile::SourceKind::pebs:
      return is_one_of({0x100b, 0x01cd, 0x02cd, 0x05d0, 0x06d0, 0x81d0, 0x82d0});  // loads or stores, all of them
    case profile::SourceKind::counter:
    case profile::SourceKind::clock:
      break;
  }
  switch (event.attr.type) {
    case PERF_TYPE_HARDWARE:
      return is_one_of({PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS, PERF_COUNT_HW_BRANCH_INSTRUCTIONS});
    case PERF_TYPE_SOFTWARE:
      return is_one_of({PERF_COUNT_SW_CPU_CLOCK, PERF_COUNT_SW_TASK_CLOCK});
    case PERF_TYPE_RAW:
      return is_one_of({0x3c, 0x76, 0xc0});  // cycles of Intel, cycles of AMD, instructions
    default:
      return false;
  }
}

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
    event.each_cpu = open_whole(of_thread).error != 0;
  }
  int error = open_whole(event).error;
  while ((error == EINVAL || error == EOPNOTSUPP) && event.attr.precise_ip > least_precise) {
    --event.attr.precise_ip;
    error = open_whole(event).error;
  }
  if (error != 0) {
    return tl::unexpected<Error>(refusal_of(event, error, kernel_settings()));
  }
  const Result<void> tested = self_test(event);
  return tested ? Result<MemoryEvent>(std::move(event)) : tl::unexpected<Error>(tested.error());
}

}  // namespace crosstalk::collectors
