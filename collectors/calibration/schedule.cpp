// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/schedule.h"

#include <algorithm>

namespace crosstalk::collectors::calibration {

std::uint64_t Schedule::left_ns(std::uint64_t now_ns) const {
  return deadline_ns_ > now_ns ? deadline_ns_ - now_ns : 0;
}

Effort Schedule::next(std::uint64_t now_ns) {
  Effort effort = effort_;
  effort.deadline_ns = now_ns + left_ns(now_ns) / std::max<std::size_t>(left_, 1);
  skip();
  return effort;
}

void Schedule::skip() { left_ -= left_ > 0 ? 1 : 0; }

std::uint64_t Schedule::preparation_deadline_ns(std::uint64_t now_ns) const {
  constexpr std::uint64_t part = 2;
  return now_ns + left_ns(now_ns) / part;
}

}  // namespace crosstalk::collectors::calibration
