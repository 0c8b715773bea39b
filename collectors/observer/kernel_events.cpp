// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/kernel_events.h"

#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "collectors/breakpoint_address.h"
#include "collectors/facilities/probe_perf.h"

namespace crosstalk::observer {
namespace {

struct Opened {
  OpenEvent event;
  int error = 0;  // errno of the refusal
};

constexpr int any_cpu = -1, no_group = -1;

Opened open_event(const perf_event_attr& attributes, pid_t tid, int cpu = any_cpu, int group = no_group) {
  Opened opened;
  const long fd = ::syscall(SYS_perf_event_open, &attributes, tid, cpu, group, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) {
    opened.error = errno;
    return opened;
  }
  opened.event.fd.reset(static_cast<int>(fd));
  if (::ioctl(opened.event.fd.get(), PERF_EVENT_IOC_ID, &opened.event.id) != 0) {
    opened.error = errno;
    opened.event.fd.reset();
  }
  return opened;
}

tl::unexpected<Error> refusal(const std::string& thread, int error) {
  switch (error) {
    case ESRCH:
      return fail(ErrorCode::not_found, thread + " is gone");
    case EACCES:
    case EPERM: {
      std::string paranoid = "unknown";
      std::ifstream("/proc/sys/kernel/perf_event_paranoid") >> paranoid;
      return fail(ErrorCode::permission, "perf events on " + thread +
                                             " are forbidden: it is another user's, or kernel.perf_event_paranoid (" +
                                             paranoid +
                                             ") is above 2; record as root, or as its user after sudo "
                                             "sysctl kernel.perf_event_paranoid=2");
    }
    case EMFILE:
      return fail(ErrorCode::system, "no descriptor is left for events on " + thread + "; see ulimit -n");
    default:
      return fail(ErrorCode::system, "cannot open an event on " + thread + ": " + std::strerror(error));
  }
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

Result<OpenEvent> open_clock(pid_t tid, const ClockSettings& settings) {
  Opened opened = open_event(clock_attributes(settings), tid);
  if (opened.error != 0) {
    return refusal("thread " + std::to_string(tid), opened.error);
  }
  return std::move(opened.event);
}

bool kernel_allowed(pid_t tid) {
  constexpr std::uint64_t some_period_ns = 1'000'000;
  return open_event(clock_attributes({some_period_ns, true}), tid).error == 0;
}

Result<PerfRing> map_ring(const OpenEvent& clock, std::uint32_t pages) {
  for (; pages > least_ring_pages; pages /= 2) {
    if (Result<PerfRing> ring = PerfRing::map(clock.fd.get(), pages)) {
      return ring;
    }
  }
  return PerfRing::map(clock.fd.get(), least_ring_pages);
}

void enable_event(const OpenEvent& event) { ::ioctl(event.fd.get(), PERF_EVENT_IOC_ENABLE, 0); }

void set_event_period(const OpenEvent& event, std::uint64_t period) {
  ::ioctl(event.fd.get(), PERF_EVENT_IOC_PERIOD, &period);
}

std::uint64_t read_clock(const OpenEvent& clock) {
  std::uint64_t count = 0;
  return ::read(clock.fd.get(), &count, sizeof count) == static_cast<ssize_t>(sizeof count) ? count : 0;
}

Result<OpenEvent> open_measuring(const perf_event_attr& attributes, pid_t tid, int cpu, const OpenEvent* leader) {
  Opened opened = open_event(attributes, tid, cpu, leader != nullptr ? leader->fd.get() : no_group);
  if (opened.error != 0) {
    return refusal(cpu == any_cpu ? "thread " + std::to_string(tid) : "processor " + std::to_string(cpu), opened.error);
  }
  return std::move(opened.event);
}

bool write_into_ring(const OpenEvent& event, int ring) {
  return ::ioctl(event.fd.get(), PERF_EVENT_IOC_SET_OUTPUT, ring) == 0;
}

EventCounts read_counts(const OpenEvent& event) {
  EventCounts counts;
  return ::read(event.fd.get(), &counts, sizeof counts) == static_cast<ssize_t>(sizeof counts) ? counts : EventCounts{};
}

std::optional<OpenEvent> open_breakpoint(pid_t tid, const WatchedPlace& place, const OpenEvent& clock) {
  perf_event_attr attributes = watch_attributes(place);
  attributes.bp_addr = collectors::breakpoint_address(attributes.bp_addr, collectors::watchpoints_led_astray());
  Opened opened = open_event(attributes, tid);
  if (opened.error != 0 || !write_into_ring(opened.event, clock.fd.get())) {
    return std::nullopt;
  }
  return std::move(opened.event);
}

void enable_breakpoint(const OpenEvent& breakpoint, std::uint32_t accesses) {
  ::ioctl(breakpoint.fd.get(), PERF_EVENT_IOC_REFRESH, accesses);
}

}  // namespace crosstalk::observer
