// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/hidden_numbers.h"

#include <errno.h>
#include <fcntl.h>

#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace {

// With a limit so high that nobody counts on all of it, not above it: the kernel's table has an entry for every number
// up to the highest.
constexpr rlim_t high_enough = 8192;
constexpr rlim_t wanted_numbers = 24'576;
constexpr rlim_t least_numbers = 64;  // fewer are not worth the trouble

struct Place {
  rlim_t first = 0;   // number
  rlim_t needed = 0;  // soft limit with which the numbers from there on can be had; 0: there are none
};

Place place_under(const rlimit64& limit) {
  Place place{limit.rlim_cur < high_enough ? limit.rlim_cur : high_enough, 0};
  const rlim_t highest = place.first + wanted_numbers < limit.rlim_max ? place.first + wanted_numbers : limit.rlim_max;
  if (highest >= place.first + least_numbers || limit.rlim_cur > high_enough) {
    place.needed = highest;
  }
  return place;
}

bool ask_limit(rlimit64& limit) { return system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit) >= 0; }

// One thread at a time, or the second would find, and put back, the limit as the first has raised it.
constinit ProcessFlag limit_taken;
constexpr int limit_tries = 2000;
constinit bool held_for_fork = false;  // by the forking thread: glibc lets one fork at a time

bool hold() {
  constexpr int patience = 1000;
  for (int i = 0; i < patience; ++i) {
    if (limit_taken.try_take(kernel_process_id())) {
      return true;
    }
    system_call(SYS_sched_yield);
  }
  return false;
}

// What the target has set in the meantime stays.
void put_back(const rlimit64& old, const rlimit64& raised) {
  rlimit64 found{};
  system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &old, &found);
  if (found.rlim_cur != raised.rlim_cur || found.rlim_max != raised.rlim_max) {
    system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &found, nullptr);
  }
}

}  // namespace

bool has_hidden_numbers() {
  rlimit64 limit{};
  return ask_limit(limit) && place_under(limit).needed != 0;
}

long duplicate_hidden(int fd) {
  const TryLock lock(limit_taken, kernel_process_id(), limit_tries);
  rlimit64 old{};
  if (!lock.held() || !ask_limit(old)) {
    return -EAGAIN;
  }
  const Place place = place_under(old);
  if (place.needed == 0) {
    return -EMFILE;
  }
  if (place.needed <= old.rlim_cur) {
    return system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, place.first);
  }
  const rlimit64 raised{place.needed, old.rlim_max};
  system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, &raised, &old);
  const long hidden = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, place.first);
  put_back(old, raised);
  return hidden;
}

void reserve_hidden_numbers(int any_fd) {
  if (const long high = duplicate_hidden(any_fd); high >= 0) {
    system_call(SYS_close, high);
  }
}

SteadyLimit::SteadyLimit() : held_(hold()) {}

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
