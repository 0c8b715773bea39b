// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/words.h"

#include <algorithm>

#include "profile/drawn_words.h"

namespace crosstalk::watch_policy {
namespace {

constexpr std::uint32_t word_bytes = profile::drawn_word_bytes;
constexpr std::uint32_t words_in_line = profile::cache_line / word_bytes;

/// Returns the largest piece that a debug register can watch (1, 2, 4 or 8 bytes, aligned) around bytes [offset, offset
/// + width) of a line: exactly the access if its size and alignment allow it.
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

/// Returns piece `index` of the pieces that fill the word around `first`, smallest first: as large as the bytes before
/// it, and beside them.
profile::WatchWord piece_beside(const profile::WatchWord& first, std::uint32_t index) {
  const std::uint32_t length = std::uint32_t{first.length} << index;
  const std::uint32_t block = first.offset / length;
  return {static_cast<std::uint8_t>((block ^ 1U) * length), static_cast<std::uint8_t>(length), 0, 1};
}

/// Any other word of the line, or a piece of the sampled bytes' own word: all bytes of the line are in play.
profile::WatchWord any_other(const profile::WatchWord& first, std::uint32_t drawn) {
  if (drawn >= words_in_line - 1) {
    return piece_beside(first, drawn - (words_in_line - 1));
  }
  const std::uint32_t own = first.offset / word_bytes;
  return piece_of((own + 1 + drawn) % words_in_line * word_bytes, word_bytes);
}

/// True if `a` and `b` count as the same draw: one word, and within the own word, whose pieces are parts of it,
/// overlapping bytes.
bool same_draw(const profile::WatchWord& first, const profile::WatchWord& a, const profile::WatchWord& b) {
  return a.offset / word_bytes == b.offset / word_bytes &&
         (a.offset / word_bytes != first.offset / word_bytes || overlap(a, b));
}

/// Chooses the second word: the partner's three times in four, to follow up the board's hint; else any other.
profile::WatchWord choose_second(const profile::WatchWord& first, const Suspicion& suspicion, std::uint64_t random) {
  const profile::WatchWord named = piece_of(suspicion.partner.offset, suspicion.partner.width);
  const bool has_name = suspicion.other_thread && !overlap(named, first);
  const std::uint32_t others = profile::drawn_from(first.length);
  const float by_name = has_name ? 0.75F : 0.0F;
  const float by_chance = (1 - by_name) / static_cast<float>(others);
  const bool follows_name = has_name && (random & 3U) != 0;
  profile::WatchWord second =
      follows_name ? named : any_other(first, static_cast<std::uint32_t>((random >> 2U) % others));
  second.probability = by_chance + (has_name && same_draw(first, second, named) ? by_name : 0.0F);
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
