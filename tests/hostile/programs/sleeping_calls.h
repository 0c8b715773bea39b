// SPDX-License-Identifier: Apache-2.0
// Calls that sleep, each in a thread of its own, beside threads that exchange lines.
#pragma once

#include <sys/time.h>
#include <time.h>

#include <functional>
#include <vector>

namespace hostile {

constexpr double limit_s = 0.5;  // of each call
constexpr timespec limit{0, 500'000'000};
constexpr timeval limit_us{0, 500'000};

struct Call {
  const char* name;
  std::function<long()> run;  // -1 with errno, as libc's functions have it
  long sleeps = 1;            // so often at most it gives up the processor when nothing interrupts it
};

/// Runs the calls at once, each twice, while two threads exchange the line, and prints how each ended. Each thread uses
/// the line by `before`, or else by burn(), before it sleeps, so that it is a candidate for watching.
int wait_all(const std::vector<Call>& calls, const std::function<void()>& before = nullptr);

/// A time `limit` from now.
timespec deadline(clockid_t clock);
/// Runs `what` after the limit, in a thread that is not joined.
void later(std::function<void()> what);

/// -1 and errno for an error that is returned.
long of_pthread(int error);
/// A system call that goes through no function of libc, as runtimes of other languages make them.
long direct_call(long number, long a = 0, long b = 0, long c = 0, long d = 0);

/// One end of a pair of sockets whose other end is silent; time-outs are set.
int silent_socket();
/// Returns a socket without connections; time-outs are set.
int listening_socket();
void set_time_outs(int fd);
/// Waits for a System V semaphore that is never released: until the limit or, without one, until it is removed.
long take_semaphore(const timespec* time_out);

}  // namespace hostile
