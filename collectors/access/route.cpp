// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/route.h"

namespace crosstalk::in_target {

bool Turn::holds(const Registers& registers) const {
  if (of == Of::nothing) {
    return true;
  }
  const std::uint64_t mask = size_mask(size);
  const std::uint64_t a = left.of(registers) & mask;
  const std::uint64_t b = right.of(registers) & mask;
  const std::uint64_t sign = std::uint64_t{1} << (8U * size - 1U);
  const std::uint64_t result = of == Of::difference ? (a - b) & mask : a & b;
  const auto flag = [](bool on, Flag which) { return on ? std::uint64_t{which} : 0; };
  std::uint64_t flags = flag(result == 0, flag_zero) | flag((result & sign) != 0, flag_sign);
  if (of == Of::difference) {
    flags |= flag(a < b, flag_carry) | flag(((a ^ b) & (a ^ result) & sign) != 0, flag_overflow);
  }
  return condition_holds(condition, flags) == taken;
}

void Route::depends_on(const Guard& guard) {
  if (guard_ == Guard{}) {
    guard_ = guard;
  } else if (guard_ != guard) {
    fixed_ = false;
  }
}

void Route::depends_on(const Turn& turn) {
  if (turn_count_ == most_turns || turn.of == Turn::Of::nothing || tests_parity(turn.condition)) {
    fixed_ = false;
    return;
  }
  turns_[turn_count_++] = turn;
}

void Route::passes(std::uint64_t begin, std::uint64_t end) {
  low_ = begin < low_ ? begin : low_;
  high_ = end > high_ ? end : high_;
}

}  // namespace crosstalk::in_target
