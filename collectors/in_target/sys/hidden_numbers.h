// SPDX-License-Identifier: Apache-2.0
// Numbers for our descriptors in the target's table that take none of the target's: above its soft limit. To get one
// there, the limit is raised for some microseconds. Whoever asks for the limit, or forks, in that time must not find it
// raised (interpose/descriptor_limits.cpp).
#pragma once

#include <sys/resource.h>

namespace crosstalk::in_target {

/// Are there numbers that the target can not miss? Not where its hard limit of descriptors is its soft limit and a low
/// one: then we have no descriptor at all. Signal-safe.
bool has_hidden_numbers();
/// The descriptor `fd` once more, under a hidden number, or -errno: -EMFILE when there is none, -EAGAIN when another
/// thread is at it. Signal-safe.
long duplicate_hidden(int fd);
/// Makes the kernel's table of descriptors as large as our hidden ones will need, while the process has one thread:
/// later the kernel waits milliseconds (an RCU grace period) for the others. `any_fd`: any open one.
void reserve_hidden_numbers(int any_fd);

/// Keeps the limit from being raised in this process for a scope: around a fork, or a question for it. Waits for some
/// milliseconds at most, then goes on without. Normal context.
class SteadyLimit {
 public:
  SteadyLimit();
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
