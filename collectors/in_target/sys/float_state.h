// SPDX-License-Identifier: Apache-2.0
// The floating-point state of our code when the program's own code calls it. Handlers get a fresh state from the
// kernel.
#pragma once

#include <immintrin.h>

namespace crosstalk::in_target {

/// For a scope, masks all exceptions and rounds to nearest. Afterwards restores the program's masks, rounding and noted
/// exceptions. Some nanoseconds.
class OwnFloatState {
 public:
  OwnFloatState() : saved_(_mm_getcsr()) {
    constexpr unsigned as_at_start = 0x1f80;
    _mm_setcsr(as_at_start);
  }
  ~OwnFloatState() { _mm_setcsr(saved_); }
  OwnFloatState(const OwnFloatState&) = delete;
  OwnFloatState& operator=(const OwnFloatState&) = delete;

 private:
  unsigned saved_;
};

}  // namespace crosstalk::in_target
