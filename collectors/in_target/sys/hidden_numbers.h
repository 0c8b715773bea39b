// SPDX-License-Identifier: Apache-2.0
// Gives our descriptors numbers that take none of the target's: above its soft limit. Raises the limit for some
// microseconds to get one there. A thread that asks for the limit, or makes a process, in that time must not find it
// raised (interpose/descriptor_limits.cpp); a child that inherits it all the same gets the old limit back.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include <cstdint>

#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

/// True if there are numbers that the target cannot miss. False if its hard limit of descriptors equals a low soft
/// limit: then we have no descriptor at all. Signal-safe.
bool has_hidden_numbers();
/// True if more than a few numbers are free below the target's limit. The kernel gives each new descriptor the lowest
/// free number first, so ours has one of the target's until it is moved, and a target that is short of them would get
/// EMFILE meanwhile. Some microseconds. Signal-safe.
bool has_spare_numbers();

using Opener = long (*)(const void* what);
/// Opens a descriptor by `open(what)` and moves it to a hidden number at once. Returns its number, or -errno: the error
/// of `open`; -EMFILE: there are no hidden numbers; -EAGAIN: the target is short of numbers, or another thread does the
/// same. Signal-safe.
long open_hidden(Opener open, const void* what);
template <class Open>
long open_hidden(const Open& open) {
  return open_hidden([](const void* what) -> long { return (*static_cast<const Open*>(what))(); }, &open);
}
/// The same for a descriptor that is necessary: it keeps its low number if it cannot be moved. For short use.
template <class Open>
long open_for_a_moment(const Open& open) {
  const long hidden = open_hidden(open);
  return hidden == -EAGAIN || hidden == -EMFILE ? open() : hidden;
}
/// A file, so.
inline long open_to_read(const char* path, int more_flags = 0) {
  return open_for_a_moment([=] { return system_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | more_flags); });
}

/// Makes the kernel's table of descriptors as large as our hidden ones will need, while the process has one thread:
/// later the kernel waits milliseconds (an RCU grace period) for the others. `any_fd`: any open one.
void reserve_hidden_numbers(int any_fd);

/// The limit is raised in this process from now on, and in no child that shares its memory or has a copy of it.
void raise_limits_in(std::int32_t pid);
/// Restores the limit in a process that was made while it was raised. Signal-safe.
void mend_inherited_limit();
/// For some milliseconds from now on the limit is not raised: libc is about to make a process, and nothing of ours
/// comes to know when that is done. Normal context.
void leave_limit_alone();

/// Keeps this process from raising the limit for a scope: around a fork, or a query of the limit. Waits for some
/// milliseconds at most, then goes on without. Normal context.
class SteadyLimit {
 public:
  /// `may_ask`: system calls may be made here.
  explicit SteadyLimit(bool may_ask);
  ~SteadyLimit();
  SteadyLimit(const SteadyLimit&) = delete;
  SteadyLimit& operator=(const SteadyLimit&) = delete;

 private:
  bool held_;
};
/// The same for pthread_atfork().
void hold_limit_for_fork();
void release_limit_after_fork();

}  // namespace crosstalk::in_target
