// SPDX-License-Identifier: Apache-2.0
// Of what a watch's second word is drawn, beside the sampled bytes: whoever draws and whoever judges has to agree.
#pragma once

#include <bit>
#include <cstdint>

namespace crosstalk::profile {

inline constexpr std::uint32_t drawn_word_bytes = 8;

/// The aligned pieces that fill a word beside one of `length` bytes (1, 2, 4 or 8): one of 4; of 2 and 4; of 1, 2
/// and 4.
[[nodiscard]] constexpr std::uint32_t pieces_beside(std::uint32_t length) {
  return static_cast<std::uint32_t>(std::countr_zero(drawn_word_bytes / length));
}

/// Out of how many the second is drawn, each as likely as any other: the line's other words, and those pieces.
[[nodiscard]] constexpr std::uint32_t drawn_from(std::uint32_t length) {
  return 64 / drawn_word_bytes - 1 + pieces_beside(length);
}

}  // namespace crosstalk::profile
