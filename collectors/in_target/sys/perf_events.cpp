// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/perf_events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <atomic>
#include <cstring>

#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace {

constexpr rlim_t room = 6 * static_cast<rlim_t>(max_threads) + 64;

perf_event_attr watch_attributes(const WatchPlace& place, std::uint64_t mark) {
  perf_event_attr attr;
  std::memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_addr = place.address;
  attr.bp_len = place.length;
  attr.bp_type = place.mode == WatchMode::write_only ? HW_BREAKPOINT_W : HW_BREAKPOINT_RW;
  attr.sample_period = 1;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.sigtrap = 1;
  attr.remove_on_exec = 1;  // the kernel asks for it with sigtrap; a new program has no handler
  attr.disabled = place.mode == WatchMode::off ? 1 : 0;
  attr.sig_data = mark;
  return attr;
}

perf_event_attr clock_attributes(std::uint64_t period_ns, std::uint64_t mark) {
  perf_event_attr attr;
  std::memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_TASK_CLOCK;
  attr.sample_period = period_ns;
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.sigtrap = 1;
  attr.remove_on_exec = 1;
  attr.sig_data = mark;
  return attr;
}

long perf_event_open(const perf_event_attr& attr, std::int32_t tid = 0) {
  return system_call(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

// Where our descriptors go: above the target's soft limit, so that they take neither a number that it may expect
// to get nor a place in its limit, and loops that close everything up to the limit miss them. With a limit so
// high that nobody counts on it, not there: the kernel's table has an entry for every number up to the highest.
constexpr rlim_t high_enough = 8192;

rlim_t hiding_place(const rlimit64& limit) { return limit.rlim_cur < high_enough ? limit.rlim_cur : high_enough; }

// One thread at a time, or the second would find, and put back, the limit as the first has raised it. Who does not
// get in within some microseconds keeps the number that it has.
constinit ProcessFlag limit_taken;
constexpr int limit_tries = 2000;

long duplicate_high(int fd) {
  const TryLock lock(limit_taken, kernel_process_id(), limit_tries);
  if (!lock.held()) {
    return -EAGAIN;
  }
  rlimit64 old{};
  if (system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &old) < 0) {
    return -EPERM;
  }
  const rlim_t place = hiding_place(old);
  const rlim_t wanted = place + room;
  if (wanted <= old.rlim_cur) {
    return system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, place);
  }
  if (wanted > old.rlim_max) {  // no room above: the top of the range is the next best
    return system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, old.rlim_cur / 2);
  }
  const rlimit64 raised{wanted, old.rlim_max};
  system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &raised, nullptr);
  const long hidden = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, place);
  system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &old, nullptr);
  return hidden;
}

// Hundreds of times a second the limit had better stay as it is: a child forked at that moment would keep the raised
// one. Descriptors that live for some milliseconds take the highest numbers below it, where hardly a program comes.
long duplicate_briefly(int fd) {
  constexpr rlim_t roomy = 1024;    // a smaller limit may well be used up by the target itself
  constexpr rlim_t borrowed = 256;  // numbers
  rlimit64 limit{};
  if (system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) < 0) {
    return -EPERM;
  }
  const rlim_t place = hiding_place(limit);
  return limit.rlim_cur < roomy || place + room <= limit.rlim_cur
             ? duplicate_high(fd)
             : system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, place - borrowed);
}

long adopt(long fd, long (*duplicate)(int), OwnedEvent& event) {
  if (fd < 0) {
    return fd;
  }
  const long hidden = duplicate(static_cast<int>(fd));
  if (hidden >= 0) {
    system_call(SYS_close, fd);
  }
  const auto number = static_cast<int>(hidden >= 0 ? hidden : fd);
  event.id = 0;
  system_call(SYS_ioctl, number, PERF_EVENT_IOC_ID, &event.id);
  std::atomic_ref(event.fd).store(number, std::memory_order_seq_cst);
  return 0;
}

bool is_ours(int fd, std::uint64_t known_id) {
  std::uint64_t id = 0;
  return fd > 0 && system_call(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id) == 0 && id == known_id;
}

}  // namespace

void reserve_descriptors(int any_fd) {
  const long high = duplicate_high(any_fd);
  if (high >= 0) {
    system_call(SYS_close, high);
  }
}

long open_watch_event(std::uint32_t word, OwnedEvent& event) {
  event.mark = watch_mark + word;
  return adopt(perf_event_open(watch_attributes({}, event.mark)), duplicate_high, event);
}

long open_brief_watch_event(std::int32_t tid, std::uint32_t word, OwnedEvent& event) {
  event.mark = watch_mark + word;
  return adopt(perf_event_open(watch_attributes({}, event.mark), tid), duplicate_briefly, event);
}

long set_watch_event(const OwnedEvent& event, const WatchPlace& place) {
  if (event.fd <= 0) {
    return -EBADF;
  }
  if (place.mode == WatchMode::off) {
    return system_call(SYS_ioctl, event.fd, PERF_EVENT_IOC_DISABLE, 0);
  }
  const perf_event_attr attr = watch_attributes(place, event.mark);
  return system_call(SYS_ioctl, event.fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr);
}

long open_clock_event(std::uint64_t period_ns, OwnedEvent& event) {
  const perf_event_attr attr = clock_attributes(period_ns, clock_mark);
  return adopt(perf_event_open(attr), duplicate_high, event);
}

long set_clock_period(const OwnedEvent& event, std::uint64_t period_ns) {
  return system_call(SYS_ioctl, event.fd, PERF_EVENT_IOC_PERIOD, &period_ns);
}

long open_alarm_event(AlarmUse use, OwnedEvent& event) {
  constexpr std::uint64_t some_period_ns = 1'000'000;  // start_alarm() sets the one that counts
  perf_event_attr attr = clock_attributes(some_period_ns, alarm_mark);
  attr.disabled = 1;
  return adopt(perf_event_open(attr), use == AlarmUse::kept ? duplicate_high : duplicate_briefly, event);
}

long start_alarm(const OwnedEvent& event, std::uint64_t cpu_ns) {
  if (event.fd <= 0) {
    return -EBADF;
  }
  const long set = set_clock_period(event, cpu_ns);
  return set < 0 ? set : system_call(SYS_ioctl, event.fd, PERF_EVENT_IOC_ENABLE, 0);
}

long stop_alarm(const OwnedEvent& event) {
  return event.fd <= 0 ? -EBADF : system_call(SYS_ioctl, event.fd, PERF_EVENT_IOC_DISABLE, 0);
}

void close_event(OwnedEvent& event) {
  const int fd = std::atomic_ref(event.fd).exchange(0, std::memory_order_seq_cst);
  if (is_ours(fd, event.id)) {
    system_call(SYS_close, fd);
  }
}

}  // namespace crosstalk::in_target
