// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "profile/records.h"
#include "profile/wait_table.h"

namespace crosstalk::profile {

/// A thread's waits of one kind, called from one place.
struct ThreadWaitRow {
  ThreadId thread;
  WaitKind kind = WaitKind::all;  // all: the sum of the thread's others, which a thread has whose waits were measured
  std::uint64_t site = 0;         // return address of the call; 0: of `all`, and places for which there was no room
  std::uint64_t waited_ns = 0, count = 0;
};

/// Looks at a thread from outside: see SampledWait in records.h.
struct SampledWaitRow {
  ThreadId thread;
  std::uint64_t time_ns = 0;
  LookKind kind = LookKind::all;
  std::uint64_t futex = 0;  // 0: not known, or there is none
  std::uint64_t looked_ns = 0, spread_ns = 0;
  std::optional<std::int64_t> slept_ns = {};  // none: not known, or not of all looks
  std::uint32_t looks = 0;
  StackId stack;
};

}  // namespace crosstalk::profile
