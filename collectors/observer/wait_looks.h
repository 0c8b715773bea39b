// SPDX-License-Identifier: Apache-2.0
// A thread's state for looks at its waits (wait_sampler.h).
#pragma once

#include <optional>
#include <utility>

#include "base/unique_fd.h"
#include "collectors/observer/wait_tally.h"

namespace crosstalk::observer {

struct WaitLooks {
  WaitLooks(UniqueFd call_file, UniqueFd schedule_file)
      : call(std::move(call_file)), schedule(std::move(schedule_file)) {}
  UniqueFd call, schedule;                  // its files in /proc
  std::optional<WaitTally> tally;           // none: it was not looked at yet
  std::optional<ScheduleTimes> times = {};  // at the last look; none: not known
  bool refused = false;                     // the kernel does not show in what it sleeps
};

}  // namespace crosstalk::observer
