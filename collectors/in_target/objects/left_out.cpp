// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/left_out.h"

namespace crosstalk::in_target::left_out {
namespace {

inline constexpr std::uint32_t none = region_count;  // the region owns no field
inline constexpr std::uint32_t full = none + 1;      // nor could it

// The field of a region; fields are never given up, so it lies before the first that is free.
std::uint32_t field_of(const Map& map, std::uint64_t region) {
  for (std::uint32_t i = 0; i < probe_limit; ++i) {
    const std::uint32_t place = place_of(region, i);
    const std::uint64_t owner = map.owner[place].load(std::memory_order_acquire);
    if (owner == region + 1) {
      return place;
    }
    if (owner == 0) {
      return none;
    }
  }
  return full;
}

std::uint32_t claim_field(Map& map, std::uint64_t region) {
  for (std::uint32_t i = 0; i < probe_limit; ++i) {
    const std::uint32_t place = place_of(region, i);
    std::uint64_t owner = 0;
    if (map.owner[place].compare_exchange_strong(owner, region + 1) || owner == region + 1) {
      return place;
    }
  }
  return full;
}

// Calls `change(word, bits)` for the words of a field, as far as [begin, end) lies in its region.
template <class Change>
void change_field(Map& map, std::uint32_t field, std::uint64_t region, std::uint64_t begin, std::uint64_t end,
                  Change change) {
  std::uint64_t first = std::max(begin, region << region_shift) >> granule_shift;
  const std::uint64_t last = (std::min(end, (region + 1) << region_shift) - 1) >> granule_shift;
  while (first <= last) {
    const std::uint64_t last_of_word = std::min(last, first | 63U);
    change(map.bits[field][(first >> 6U) % region_words], bits_of(first, last_of_word));
    first = last_of_word + 1;
  }
}

void clear_bits(std::atomic<std::uint64_t>& word, std::uint64_t bits) {
  if ((word.load(std::memory_order_relaxed) & bits) != 0) {
    word.fetch_and(~bits, std::memory_order_relaxed);
  }
}

}  // namespace

void set(Map& map, std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t end = begin + std::max<std::uint64_t>(bytes, 1);
  for (std::uint64_t region = begin >> region_shift; region <= (end - 1) >> region_shift; ++region) {
    const std::uint32_t field = claim_field(map, region);
    if (field < region_count) {
      change_field(map, field, region, begin, end, [](std::atomic<std::uint64_t>& word, std::uint64_t wanted) {
        if ((word.load(std::memory_order_relaxed) & wanted) != wanted) {
          word.fetch_or(wanted, std::memory_order_relaxed);
        }
      });
    }
  }
}

void clear(Map& map, std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t end = begin + std::max<std::uint64_t>(bytes, 1);
  if (bytes >> region_shift >= region_count) {  // a terabyte that is reserved has more regions than there are fields
    for (std::uint32_t field = 0; field < region_count; ++field) {
      const std::uint64_t owner = map.owner[field].load(std::memory_order_acquire);
      if (owner != 0 && owner << region_shift > begin && (owner - 1) << region_shift < end) {
        change_field(map, field, owner - 1, begin, end, clear_bits);
      }
    }
    return;
  }
  for (std::uint64_t region = begin >> region_shift; region <= (end - 1) >> region_shift; ++region) {
    const std::uint32_t field = field_of(map, region);
    if (field < region_count) {
      change_field(map, field, region, begin, end, clear_bits);
    }
  }
}

bool holds(const Map& map, std::uint64_t address) {
  const std::uint32_t field = field_of(map, address >> region_shift);
  if (field >= region_count) {
    return field == full;
  }
  const std::uint64_t granule = address >> granule_shift;
  const std::uint64_t word = map.bits[field][(granule >> 6U) % region_words].load(std::memory_order_relaxed);
  return (word >> (granule & 63U) & 1U) != 0;
}

}  // namespace crosstalk::in_target::left_out
