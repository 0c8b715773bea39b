// SPDX-License-Identifier: Apache-2.0
// The choices for a watch's second word, beside the sampled bytes. The collector that draws and the estimator that
// weighs must use the same ones.
#pragma once

#include <bit>
#include <cstdint>

namespace crosstalk::profile {

inline constexpr std::uint32_t drawn_word_bytes = 8;

/// The number of aligned pieces that fill a word beside a piece of `length` bytes (1, 2, 4 or 8): for 4, one of 4; for
/// 2, one of 2 and one of 4; for 1, one each of 1, 2 and 4.
[[nodiscard]] constexpr std::uint32_t pieces_beside(std::uint32_t length) {
  return static_cast<std::uint32_t>(std::countr_zero(drawn_word_bytes / length));
}

/// The number of choices for the second word, all equally likely: the line's other words, and those pieces.
[[nodiscard]] constexpr std::uint32_t drawn_from(std::uint32_t length) {
  return 64 / drawn_word_bytes - 1 + pieces_beside(length);
}

}  // namespace crosstalk::profile
