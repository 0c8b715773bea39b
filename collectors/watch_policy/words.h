// SPDX-License-Identifier: Apache-2.0
// Chooses the watched words of a line, and divides debug registers among watches.
#pragma once

#include <cstdint>

#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/sampled_access.h"
#include "profile/records.h"

namespace crosstalk::watch_policy {

inline constexpr std::uint32_t most_registers = 4;  // of x86
/// Words of a watch: one for the sampled bytes, and one for the partner's or for random other bytes of the line. This
/// shows false sharing, even of neighbours in one word.
inline constexpr std::uint32_t words_per_slot = 2;
inline constexpr std::uint32_t watch_slots = most_registers / words_per_slot;

/// Debug registers shared out into slots, each of which serves one watch at a time. Slot 0 is for lines that the board
/// suspects, the others for exploring; one slot serves both.
struct alignas(std::uint64_t) SlotPlan {  // read and written at once
  std::uint32_t registers = 0;
  std::uint32_t slots = 0;

  /// Returns the plan for so many registers, at most as many as there can be.
  [[nodiscard]] static SlotPlan of(std::uint32_t registers);
  /// A watch uses one of the slots [first, last).
  [[nodiscard]] std::uint32_t first(bool suspected) const { return suspected || slots == 1 ? 0 : 1; }
  [[nodiscard]] std::uint32_t last(bool suspected) const { return suspected && slots > 1 ? 1 : slots; }
};

struct WordChoice {
  std::uint32_t words = 0;
  profile::WatchWord word[words_per_slot];
};

/// Draws the words for a watch that has `registers` (at least one) to itself, with their probabilities; `random` is 64
/// random bits.
[[nodiscard]] WordChoice choose_words(const SampledAccess& access, const Suspicion& suspicion, std::uint32_t registers,
                                      std::uint64_t random);

}  // namespace crosstalk::watch_policy
