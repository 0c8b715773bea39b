// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "profile/wait_table.h"

namespace crosstalk::profile {

/// A thread's waits of one kind, called from one place.
struct ThreadWaitRow {
  ThreadId thread;
  WaitKind kind = WaitKind::all;  // all: the sum of the thread's others, which a thread has whose waits were measured
  std::uint64_t site = 0;         // return address of the call; 0: of `all`, and places for which there was no room
  std::uint64_t waited_ns = 0, count = 0;
};

}  // namespace crosstalk::profile
