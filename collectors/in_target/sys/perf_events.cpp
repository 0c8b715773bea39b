// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/perf_events.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "collectors/breakpoint_address.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/watch_policy/thread_clock.h"

namespace crosstalk::in_target {
namespace {

constinit std::atomic<std::uint32_t> open_count = 0;
constinit std::atomic<std::uint32_t> clock_count = 0;  // of open_count
constinit std::atomic<std::uint64_t> last_closed_ns = 0;

constinit std::atomic<bool> led_astray{false};

perf_event_attr watch_attributes(const WatchPlace& place, std::uint64_t mark) {
  perf_event_attr attr;
  std::memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_addr = collectors::breakpoint_address(place.address, led_astray.load(std::memory_order_relaxed));
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
  attr.sample_period = std::max(period_ns, watch_policy::shortest_expiry_ns);
  attr.exclude_kernel = 1;
  attr.exclude_hv = 1;
  attr.sigtrap = 1;
  attr.remove_on_exec = 1;
  attr.sig_data = mark;
  return attr;
}

constexpr int no_group = -1;

long perf_event_open(const perf_event_attr& attr, std::int32_t tid, int group) {
  return system_call(SYS_perf_event_open, &attr, tid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

// Returns a number that tells our descriptor from one that the program has since opened under the same number: the
// kernel's id of an event, or the number of our module's device, which programs do not open. 0: it is neither.
std::uint64_t identity_of(long fd) {
  constexpr std::uint64_t of_device = std::uint64_t{1} << 63U;
  std::uint64_t id = 0;
  if (system_call(SYS_ioctl, fd, PERF_EVENT_IOC_ID, &id) == 0) {
    return id;
  }
  struct stat file {};
  const bool device = system_call(SYS_fstat, fd, &file) == 0 && S_ISCHR(file.st_mode);
  return device ? of_device | file.st_rdev : 0;
}

// Opens a descriptor for good, under a hidden number or not at all, so that the target may open as many as before.
template <class Open>
long open_owned(const Open& open, OwnedEvent& event) {
  const long hidden = open_hidden(open);
  if (hidden < 0) {
    return hidden;
  }
  event.id = identity_of(hidden);
  open_count.fetch_add(1, std::memory_order_relaxed);
  std::atomic_ref(event.fd).store(static_cast<int>(hidden), std::memory_order_seq_cst);
  return 0;
}

long open_event(const perf_event_attr& attr, std::int32_t tid, OwnedEvent& event, int group = no_group) {
  return open_owned([&] { return perf_event_open(attr, tid, group); }, event);
}

// As long as it is open, it costs its thread what a clock does.
long count_clock(long result) {
  clock_count.fetch_add(result >= 0 ? 1 : 0, std::memory_order_relaxed);
  return result;
}

bool is_ours(int fd, std::uint64_t known_id) { return fd > 0 && known_id != 0 && identity_of(fd) == known_id; }

constinit std::atomic<bool> switches_off{false};

// Returns true for the one caller that closes it.
bool close_if_open(OwnedEvent& event) {
  const int fd = std::atomic_ref(event.fd).exchange(0, std::memory_order_seq_cst);
  if (fd <= 0) {
    return false;
  }
  if (is_ours(fd, event.id)) {
    if (switches_off.load(std::memory_order_relaxed)) {
      system_call(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
    }
    system_call(SYS_close, fd);
  }
  open_count.fetch_sub(1, std::memory_order_relaxed);
  last_closed_ns.store(monotonic_ns(), std::memory_order_relaxed);
  return true;
}

}  // namespace

long open_watch_event(std::int32_t tid, std::uint32_t word, OwnedEvent& event) {
  event.mark = watch_mark + word;
  return open_event(watch_attributes({}, event.mark), tid, event);
}

long set_watch_event(const OwnedEvent& event, const WatchPlace& place) {
  const int fd = std::atomic_ref(const_cast<int&>(event.fd)).load(std::memory_order_relaxed);
  if (!is_ours(fd, event.id)) {
    return -EBADF;
  }
  if (place.mode == WatchMode::off) {
    return system_call(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
  }
  const perf_event_attr attr = watch_attributes(place, event.mark);
  return system_call(SYS_ioctl, fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr);
}

long open_clock_event(std::int32_t tid, std::uint64_t period_ns, OwnedEvent& event) {
  return count_clock(open_event(clock_attributes(period_ns, clock_mark), tid, event));
}

void close_clock_event(OwnedEvent& event) {
  clock_count.fetch_sub(close_if_open(event) ? 1 : 0, std::memory_order_relaxed);
}

long set_clock_period(const OwnedEvent& event, std::uint64_t period_ns) {
  const std::uint64_t possible_ns = std::max(period_ns, watch_policy::shortest_expiry_ns);
  return control(event, PERF_EVENT_IOC_PERIOD, &possible_ns);
}

long open_measuring_event(const perf_event_attr& attr, std::int32_t tid, const OwnedEvent* leader, OwnedEvent& event) {
  return count_clock(open_event(attr, tid, event, leader != nullptr ? leader->fd : no_group));
}

long open_like_clock(Opener open, OwnedEvent& event) {
  return count_clock(open_owned([open] { return open(nullptr); }, event));
}

long control(const OwnedEvent& event, unsigned long request, const void* argument) {
  return is_ours(event.fd, event.id) ? system_call(SYS_ioctl, event.fd, request, argument) : -EBADF;
}

long enable_event(const OwnedEvent& event) { return control(event, PERF_EVENT_IOC_ENABLE, nullptr); }

long write_into_ring_of(const OwnedEvent& event, const OwnedEvent& owner) {
  return system_call(SYS_ioctl, event.fd, PERF_EVENT_IOC_SET_OUTPUT, owner.fd);
}

long read_counts(const OwnedEvent& event, EventCounts& counts) {
  if (!is_ours(event.fd, event.id)) {
    return -EBADF;
  }
  const long got = system_call(SYS_read, event.fd, &counts, sizeof counts);
  return got < 0 || got == static_cast<long>(sizeof counts) ? got : -EIO;
}

long open_alarm_event(OwnedEvent& event) {
  constexpr std::uint64_t some_period_ns = 1'000'000;  // start_alarm() sets the one that counts
  perf_event_attr attr = clock_attributes(some_period_ns, alarm_mark);
  attr.disabled = 1;
  return open_event(attr, 0, event);
}

long start_alarm(const OwnedEvent& event, std::uint64_t cpu_ns) {
  const long set = set_clock_period(event, cpu_ns);
  return set < 0 ? set : system_call(SYS_ioctl, event.fd, PERF_EVENT_IOC_ENABLE, 0);
}

long stop_alarm(const OwnedEvent& event) { return control(event, PERF_EVENT_IOC_DISABLE, nullptr); }

void close_event(OwnedEvent& event) { close_if_open(event); }

void lead_watchpoints_astray(bool on) { led_astray.store(on, std::memory_order_relaxed); }

void switch_off_before_closing(bool on) { switches_off.store(on, std::memory_order_relaxed); }

std::uint32_t events_open() { return open_count.load(std::memory_order_relaxed); }

std::uint32_t clock_events_open() { return clock_count.load(std::memory_order_relaxed); }

std::uint64_t last_event_closed_ns() { return last_closed_ns.load(std::memory_order_relaxed); }

void forget_events_open() {
  open_count.store(0, std::memory_order_relaxed);
  clock_count.store(0, std::memory_order_relaxed);
  last_closed_ns.store(0, std::memory_order_relaxed);
}

}  // namespace crosstalk::in_target
