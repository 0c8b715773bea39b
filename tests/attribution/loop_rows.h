// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "attribution/model/model.h"

namespace crosstalk::attribution::test {

/// A loop that has half of the recording's time, by these threads.
inline LoopRow loop_of(std::vector<LoopThread> threads) {
  LoopRow loop;
  loop.id = 1;
  loop.share = 0.5;
  loop.header = 0x1000;
  loop.threads = std::move(threads);
  for (const LoopThread& thread : loop.threads) {
    loop.cpu_s += thread.cpu_s;
  }
  return loop;
}

}  // namespace crosstalk::attribution::test
