// SPDX-License-Identifier: Apache-2.0
#include "daemon/target.h"

#include <algorithm>

namespace crosstalk::daemon {

bool Target::just_ended(std::uint64_t now_ns) {
  if (ended()) {
    return false;
  }
  status_ = child_.poll_status();
  ended_ns_ = ended() ? now_ns : 0;
  return ended();
}

bool all_ended(const Targets& targets) {
  return std::all_of(targets.begin(), targets.end(), [](const Target& target) { return target.ended(); });
}

std::uint64_t last_end_ns(const Targets& targets) {
  std::uint64_t last = 0;
  for (const Target& target : targets) {
    last = std::max(last, target.ended_ns());
  }
  return last;
}

}  // namespace crosstalk::daemon
