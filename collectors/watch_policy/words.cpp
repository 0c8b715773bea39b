// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/words.h"

#include <algorithm>

namespace crosstalk::watch_policy {
namespace {

constexpr std::uint32_t word_bytes = 8;
constexpr std::uint32_t words_in_line = profile::cache_line / word_bytes;

/// The largest piece that a debug register can watch (1, 2, 4 or 8 bytes, aligned) around bytes
/// [offset, offset + width) of a line: exactly the access where its size and alignment allow.
profile::WatchWord piece_of(std::uint32_t offset, std::uint32_t width) {
  std::uint32_t length = 1;
  while (length < width && length < word_bytes) {
    length *= 2;
  }
  return {static_cast<std::uint8_t>(offset & ~(length - 1)), static_cast<std::uint8_t>(length), 0, 1};
}

bool overlap(const profile::WatchWord& a, const profile::WatchWord& b) {
  return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

/// The second word: the partner's three times in four, so that what the board says is followed up; else any other
/// word of the line, so that all eight are in play.
profile::WatchWord choose_second(const profile::WatchWord& first, const Suspicion& suspicion, std::uint64_t random) {
  const profile::WatchWord named = piece_of(suspicion.partner.offset, suspicion.partner.width);
  const bool has_name = suspicion.other_thread && !overlap(named, first);
  const float by_name = has_name ? 0.75F : 0.0F;
  const float by_chance = (1 - by_name) / static_cast<float>(words_in_line - 1);
  profile::WatchWord second = named;
  if (!has_name || (random & 3U) == 0) {
    const std::uint32_t own = first.offset / word_bytes;
    const std::uint32_t other =
        (own + 1 + static_cast<std::uint32_t>((random >> 2U) % (words_in_line - 1))) % words_in_line;
    second = piece_of(other * word_bytes, word_bytes);
  }
  second.probability =
      by_chance + (has_name && second.offset / word_bytes == named.offset / word_bytes ? by_name : 0.0F);
  return second;
}

}  // namespace

SlotPlan SlotPlan::of(std::uint32_t registers) {
  if (registers == 3) {
    return {words_per_slot, 1};  // a slot of one word would see true sharing alone
  }
  const std::uint32_t used = std::min(registers, most_registers);
  return {used, (used + words_per_slot - 1) / words_per_slot};
}

WordChoice choose_words(const SampledAccess& access, const Suspicion& suspicion, std::uint32_t registers,
                        std::uint64_t random) {
  WordChoice choice;
  choice.words = 1;
  choice.word[0] = piece_of(access.offset, access.width);
  profile::WatchWord second = choose_second(choice.word[0], suspicion, random);
  if (registers == 1) {  // the sampled bytes or the other word, as a coin falls
    choice.word[0].probability = 0.5F;
    second.probability *= 0.5F;
    if (((random >> 40U) & 1U) != 0) {
      choice.word[0] = second;
    }
    return choice;
  }
  choice.word[1] = second;
  choice.words = 2;
  return choice;
}

}  // namespace crosstalk::watch_policy
