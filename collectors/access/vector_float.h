// SPDX-License-Identifier: Apache-2.0
// Floating-point arithmetic as an interrupted thread would do it.
#pragma once

#include <xmmintrin.h>

#include <cstdint>

namespace crosstalk::in_target {

/// The thread's mode (MXCSR: rounding, denormal numbers) for a scope, but no exception raises a signal.
class ThreadFloatMode {
 public:
  explicit ThreadFloatMode(std::uint32_t mode) : mode_(mode), saved_(_mm_getcsr()) {
    _mm_setcsr((mode & ~std::uint32_t{noted}) | masks);
  }
  ~ThreadFloatMode() { _mm_setcsr(saved_); }
  ThreadFloatMode(const ThreadFloatMode&) = delete;
  ThreadFloatMode& operator=(const ThreadFloatMode&) = delete;

  /// True if there may have been an exception that would have raised a signal in the thread. `ignored`: exceptions that
  /// do not count. An exact underflow is noted only if it raises a signal (Intel SDM vol. 1, 4.9.1.5): always true for
  /// a thread that enables those.
  [[nodiscard]] bool would_trap(std::uint32_t ignored = 0) const {
    const std::uint32_t raises = ~(mode_ >> first_mask) & noted;
    return (raises & underflow) != 0 || (_mm_getcsr() & raises & ~ignored) != 0;
  }

  static constexpr std::uint32_t noted = 0x3f;
  static constexpr std::uint32_t inexact = 0x20;
  static constexpr std::uint32_t underflow = 0x10;

 private:
  static constexpr std::uint32_t masks = 0x1f80;
  static constexpr unsigned first_mask = 7;
  std::uint32_t mode_;
  std::uint32_t saved_;
};

}  // namespace crosstalk::in_target
