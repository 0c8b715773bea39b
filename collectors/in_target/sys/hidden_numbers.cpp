// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/hidden_numbers.h"

#include <errno.h>
#include <fcntl.h>

#include <atomic>

#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace {

// With a limit so high that nobody counts on all of it, not above it: the kernel's table has an entry for every number
// up to the highest.
constexpr rlim_t high_enough = 8192;
constexpr rlim_t wanted_numbers = 24'576;
constexpr rlim_t least_numbers = 64;  // fewer are not worth the trouble

struct HiddenPlace {
  rlim_t first = 0;   // number
  rlim_t needed = 0;  // soft limit that gives the numbers from there on; 0: there are none
};

// Stays below the hard limit, to which programs raise their soft one, so that a raised limit of ours can be told by its
// value.
HiddenPlace place_under(const rlimit64& limit) {
  HiddenPlace place{limit.rlim_cur < high_enough ? limit.rlim_cur : high_enough, 0};
  const rlim_t most = limit.rlim_max > 0 ? limit.rlim_max - 1 : 0;
  const rlim_t highest = place.first + wanted_numbers < most ? place.first + wanted_numbers : most;
  if (highest >= place.first + least_numbers || limit.rlim_cur > high_enough) {
    place.needed = highest;
  }
  return place;
}

bool ask_limit(rlimit64& limit) { return system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) >= 0; }

constexpr unsigned spare_numbers = 24;  // free numbers that the target needs: more than it takes while one is moved

// The highest numbers are given out last, so in most programs they are all free.
bool spares_under(rlim_t soft) {
  constexpr unsigned most_asked = 64;
  unsigned free = 0;
  for (unsigned asked = 1; asked <= most_asked && asked <= soft && free < spare_numbers; ++asked) {
    free += system_call(SYS_fcntl, soft - asked, F_GETFD) == -EBADF ? 1 : 0;
  }
  return free == spare_numbers;
}

// One thread at a time, or the second would find, and put back, the limit as the first has raised it.
constinit ProcessFlag limit_taken;
constexpr int limit_tries = 2000;
constinit bool held_for_fork = false;  // by the forking thread: glibc lets one fork at a time
constinit std::atomic<std::int32_t> raised_in{0};
constinit std::atomic<std::uint64_t> left_alone_until_ns{0};

// How the limit was raised last, for children that were made just then.
constinit std::atomic<rlim_t> last_soft{0}, last_raised{0};

// A child that shares our memory must not take the flag: to it, it looks free, since flags are a process's.
bool hold() {
  constexpr int patience = 1000;
  const std::int32_t pid = kernel_process_id();
  for (int i = 0; i < patience && raised_in.load(std::memory_order_relaxed) == pid; ++i) {
    if (limit_taken.try_take(pid)) {
      return true;
    }
    system_call(SYS_sched_yield);
  }
  return false;
}

// Keeps a limit that the target has set in the meantime.
void put_back(const rlimit64& old, const rlimit64& raised) {
  rlimit64 found{};
  system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &old, &found);
  if (found.rlim_cur != raised.rlim_cur || found.rlim_max != raised.rlim_max) {
    system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &found, nullptr);
  }
}

// The descriptor once more, under a hidden number; the flag is held. `close_it`: the low number is given back as soon
// as may be.
long duplicate(long fd, const rlimit64& limit, const HiddenPlace& place, bool close_it) {
  const bool raise = place.needed > limit.rlim_cur;
  const rlimit64 raised{place.needed, limit.rlim_max};
  rlimit64 old = limit;
  if (raise) {
    last_soft.store(limit.rlim_cur, std::memory_order_relaxed);
    last_raised.store(raised.rlim_cur, std::memory_order_relaxed);
    system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &raised, &old);
  }
  const long hidden = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, place.first);
  if (close_it) {
    system_call(SYS_close, fd);
  }
  if (raise) {
    put_back(old, raised);
  }
  return hidden;
}

}  // namespace

bool has_hidden_numbers() {
  rlimit64 limit{};
  return ask_limit(limit) && place_under(limit).needed != 0;
}

bool has_spare_numbers() {
  rlimit64 limit{};
  return ask_limit(limit) && spares_under(limit.rlim_cur);
}

// All that takes time is done before there is a descriptor.
long open_hidden(Opener open, const void* what) {
  const TryLock lock(limit_taken, kernel_process_id(), limit_tries);
  rlimit64 limit{};
  if (!lock.held() || !ask_limit(limit)) {
    return -EAGAIN;
  }
  const HiddenPlace place = place_under(limit);
  if (place.needed == 0) {
    return -EMFILE;
  }
  if (monotonic_ns() < left_alone_until_ns.load(std::memory_order_relaxed) || !spares_under(limit.rlim_cur)) {
    return -EAGAIN;
  }
  const long fd = open(what);
  return fd < 0 ? fd : duplicate(fd, limit, place, true);
}

void reserve_hidden_numbers(int any_fd) {
  rlimit64 limit{};
  if (!ask_limit(limit) || place_under(limit).needed == 0) {
    return;
  }
  if (const long high = duplicate(any_fd, limit, place_under(limit), false); high >= 0) {
    system_call(SYS_close, high);
  }
}

void raise_limits_in(std::int32_t pid) { raised_in.store(pid, std::memory_order_relaxed); }

void mend_inherited_limit() {
  rlimit64 limit{};
  const rlim_t raised = last_raised.load(std::memory_order_relaxed);
  if (raised != 0 && ask_limit(limit) && limit.rlim_cur == raised) {
    limit.rlim_cur = last_soft.load(std::memory_order_relaxed);
    system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &limit, nullptr);
  }
}

void leave_limit_alone() {
  constexpr std::uint64_t some_ns = 20'000'000;
  left_alone_until_ns.store(monotonic_ns() + some_ns, std::memory_order_relaxed);
  const SteadyLimit steady(true);  // a thread that has just raised it is done after this
}

SteadyLimit::SteadyLimit(bool may_ask) : held_(may_ask && hold()) {
  if (may_ask) {
    mend_inherited_limit();
  }
}

SteadyLimit::~SteadyLimit() {
  if (held_) {
    limit_taken.give();
  }
}

void hold_limit_for_fork() { held_for_fork = hold(); }

void release_limit_after_fork() {
  if (held_for_fork) {
    held_for_fork = false;
    limit_taken.give();
  }
}

}  // namespace crosstalk::in_target
