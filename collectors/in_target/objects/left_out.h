// SPDX-License-Identifier: Apache-2.0
// Marks memory of blocks that were left out of the block table for being small. The table's entries for such memory are
// out of date: they name earlier blocks.
//
// Has a bit for each 16 bytes, as allocators align blocks. The bit is set when a left-out block is allocated there, and
// cleared when an entered one is. The 4096 bits of a region of 64 KiB form a field; a region owns a field from its
// first left-out block on, for good. Most blocks come where one of their kind has been, and find their bits set: that
// costs two loads from memory that is a hundredth of the heap, and writes nothing.
//
// If other regions own all fields that a region could own, nothing is known of it, and none of its blocks is named.
//
// Mapped when the first block is to be left out: most programs never have it. If a limit of the program's memory leaves
// no room for it, all blocks stay listed, at any cost.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target::left_out {

inline constexpr unsigned granule_shift = 4;
inline constexpr unsigned word_shift = granule_shift + 6;  // memory of a word of bits
inline constexpr unsigned region_shift = 16;
inline constexpr std::size_t region_words = std::size_t{1} << (region_shift - word_shift);
inline constexpr unsigned region_bits = 13;
inline constexpr std::uint32_t region_count = 1U << region_bits;  // 512 MiB of heap
inline constexpr std::uint32_t probe_limit = 8;

struct Map {
  std::atomic<std::uint64_t> owner[region_count];  // number of the region + 1; 0: of none
  std::atomic<std::uint64_t> bits[region_count][region_words];
};

/// Returns the first place to look for a region's field. Neighbours lie next to each other, so that their owners share
/// lines; each range of 64 MiB, the size of allocators' arenas, begins at a place of its own (as in block_table.h).
constexpr std::uint32_t home_of(std::uint64_t region) {
  const std::uint32_t turn = static_cast<std::uint32_t>(region >> 10U) * 0x9e3779b9U;
  return (static_cast<std::uint32_t>(region) + (turn >> (32U - region_bits))) % region_count;
}
/// Returns the place for a later attempt: far off, away from the neighbours that occupy the first place.
constexpr std::uint32_t place_of(std::uint64_t region, std::uint32_t attempt) {
  return (home_of(region) + attempt * 1021) % region_count;
}

/// Bits of the granules `first` to `last`, which lie in one word.
constexpr std::uint64_t bits_of(std::uint64_t first, std::uint64_t last) {
  return ~std::uint64_t{0} >> (63U - (last - first)) << (first & 63U);
}

/// Sets or clears the bits of a block. Lock-free, any context.
void set(Map& map, std::uint64_t begin, std::uint64_t bytes);
void clear(Map& map, std::uint64_t begin, std::uint64_t bytes);

/// True if `address` belongs to a block that was left out, or if this is not known.
bool holds(const Map& map, std::uint64_t address);

/// True if the bits of a block are set, as far as a quick look tells. It reads 64 bits from the byte of the first one,
/// at any alignment: aligned words would need two reads for one block in ten.
inline bool is_set(const Map& map, std::uint64_t begin, std::uint64_t bytes) {
  constexpr std::uint64_t most = 56;  // granules more than the first, which then are in 64 bits
  constexpr std::uint64_t region_bytes = std::uint64_t{1} << region_shift;
  const std::uint64_t first = begin >> granule_shift;
  const std::uint64_t more = ((begin + bytes - 1) >> granule_shift) - first;  // of 0 bytes: very many
  const std::uint64_t offset = begin % region_bytes;
  const std::uint64_t region = begin >> region_shift;
  const std::uint32_t place = home_of(region);
  if (more > most || offset > region_bytes - (std::uint64_t{128} << granule_shift) ||
      map.owner[place].load(std::memory_order_relaxed) != region + 1) {
    return false;
  }
  const auto* from =
      reinterpret_cast<const std::uint8_t*>(map.bits[place]) + (offset >> (granule_shift + 3));  // NOLINT
  std::uint64_t bits = 0;  // of two of the map's words, perhaps, which C++ has no load for
  asm("movq %1, %0" : "=r"(bits) : "m"(*reinterpret_cast<const std::uint64_t(*)[1]>(from)));  // NOLINT
  return ~(bits >> (first & 7U)) << (63U - more) == 0;
}

}  // namespace crosstalk::in_target::left_out
