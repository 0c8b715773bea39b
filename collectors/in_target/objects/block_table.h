// SPDX-License-Identifier: Apache-2.0
// Finds the block of memory that covers an address: a fixed, lossy table that is written at each allocation and read in
// signal handlers.
//
// Blocks are not removed when they are freed, because free() is not interposed (see heap.cpp): a lookup returns the
// newest block that contains the address, and a block that reuses freed memory is newer.
//
// A block of `bytes` belongs to the level k with 2^k < bytes <= 2^(k+1) (small blocks to the lowest) and is entered
// once, under the granule of 2^k bytes in which it begins. Two live blocks of one level cannot begin in one granule, so
// nothing is lost while a level's heap fits its part of the table, and a block that contains an address begins in the
// address's granule or in one of the two before it: three probes a level. Neighbours in memory are neighbours in the
// table, so allocation in a row writes in a row. If the heap is larger than the table, the newer block takes the place.
//
// Blocks below the threshold are not entered, but their places are noted (left_out.h): a lookup finds no block there.
//
// Entries are written without a lock. A reader that meets an entry half written, or mixed from two writers,
// sees a wrong check word and takes it for empty.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "collectors/in_target/objects/left_out.h"
#include "collectors/watch_policy/block_threshold.h"
#include "profile/records.h"

namespace crosstalk::in_target::blocks {

inline constexpr unsigned lowest_level = 5;    // granules of 32 bytes: no allocator packs closer above 8 bytes
inline constexpr unsigned highest_level = 46;  // the user half of the address space
inline constexpr unsigned level_count = highest_level - lowest_level + 1;
inline constexpr std::uint64_t covered_bytes = std::uint64_t{2} << 20;  // of heap, by the lower levels each
// The table is then 5 MiB, touched as the heap grows. A program with little heap shall not have that much mapped: the
// table that it begins with covers a sixteenth, and is replaced when a level's blocks are spread wider, or over two
// ranges (see slot_of()). Measured with
// bench/in_target_heap_bench.cpp, an allocation costs 2 to 3 ns more, 4 to 5 when the table's part in use exceeds a
// core's second-level cache, 9 when blocks take older ones' places at random; the work is always one entry written.
// Twice the coverage would cost the latter 2 ns more.
inline constexpr std::uint32_t least_entries = 1024;  // of a level
inline constexpr unsigned smaller_at_first = 4;       // powers of two

struct LevelPlace {
  std::uint32_t first = 0;  // index of its first entry
  std::uint32_t mask = 0;   // entries - 1
};

struct Layout {
  std::array<LevelPlace, level_count> places{};
  std::size_t entries = 0;
};

consteval Layout lay_out(unsigned smaller) {
  Layout layout;
  std::uint32_t first = 0;
  for (unsigned i = 0; i < level_count; ++i) {
    const std::uint64_t wanted = covered_bytes >> (i + lowest_level);
    const std::uint32_t entries =
        (wanted < least_entries ? least_entries : static_cast<std::uint32_t>(wanted)) >> smaller;
    layout.places[i] = {first, entries - 1};
    first += entries;
  }
  layout.entries = first;
  return layout;
}

inline constexpr Layout first_layout = lay_out(smaller_at_first);
inline constexpr Layout full_layout = lay_out(0);

/// `check` is `state(...)` xor `mix(...)` of the three others.
struct alignas(32) Entry {  // read and written by get() and put() only
  std::uint64_t begin;
  std::uint64_t bytes;
  std::uint64_t site;  // with the upper bits of the stamp, see pack()
  std::uint64_t check;
};
inline std::uint64_t get(std::uint64_t& word) { return std::atomic_ref(word).load(std::memory_order_relaxed); }
inline void put(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
}

// state: | magic 26 | lower bits of the stamp 32 | kind 2 | report generation 4 |
// site:  | upper bits of the stamp 14 | code address 50 |
// A stamp has 46 bits. The magic is what tells a whole entry from one that is read while it is written: of those, one
// in 2^26 passes.
inline constexpr std::uint64_t magic = std::uint64_t{0x2b10c4e} << 38U;
inline constexpr std::uint64_t magic_mask = std::uint64_t{0x3ffffff} << 38U;
inline constexpr unsigned stamp_shift = 6;
inline constexpr unsigned site_bits = 50;
inline constexpr std::uint64_t site_mask = (std::uint64_t{1} << site_bits) - 1;
inline constexpr std::uint64_t stamp_mask = (std::uint64_t{1} << 46U) - 1;
inline constexpr std::uint64_t lower_stamp_mask = 0xffffffff;

constexpr std::uint64_t state(std::uint64_t stamp, profile::BlockKind kind) {
  return magic | (stamp & lower_stamp_mask) << stamp_shift | static_cast<std::uint64_t>(kind) << 4U;
}
constexpr std::uint64_t pack(std::uint64_t site, std::uint64_t stamp) {
  return (site & site_mask) | (stamp & stamp_mask) >> 32U << site_bits;
}
constexpr std::uint64_t stamp_of(std::uint64_t state, std::uint64_t packed_site) {
  return (state >> stamp_shift & lower_stamp_mask) | packed_site >> site_bits << 32U;
}
constexpr profile::BlockKind kind_of(std::uint64_t state) { return static_cast<profile::BlockKind>(state >> 4U & 3U); }
constexpr std::uint64_t generation_of(std::uint64_t state) { return state & 15U; }

/// Spreads any difference of the fields into the magic's bits.
constexpr std::uint64_t mix(std::uint64_t begin, std::uint64_t bytes, std::uint64_t site) {
  return (begin ^ std::rotl(bytes, 21) ^ std::rotl(site, 42)) * 0x9e3779b97f4a7c15U;
}

/// Returns the level of blocks of `bytes`; for 0 bytes, a number above highest_level.
constexpr unsigned level_of(std::uint64_t bytes) {
  return 63U - static_cast<unsigned>(__builtin_clzll((bytes - 1) | (std::uint64_t{1} << lowest_level)));
}

inline constexpr unsigned range_bits = 26;  // allocators place their arenas at multiples of 64 MiB

/// Returns the place of the entry for blocks of level `level` that begin in the granule of `address`. Each range of 64
/// MiB begins at a place of its own, the golden section of the level's part behind the range before it. So consecutive
/// ranges, such as the arenas of many threads, lie as far from each other as their number allows, and a heap that
/// crosses a boundary does not collide with itself.
constexpr std::size_t slot_of(const Layout& layout, std::uint64_t address, unsigned level) {
  const LevelPlace place = layout.places[level - lowest_level];
  const std::uint32_t turn = static_cast<std::uint32_t>(address >> range_bits) * 0x9e3779b9U;  // in 2^-32 of the part
  const std::uint64_t begin = (std::uint64_t{place.mask} + 1) * turn >> 32U;
  return place.first + (((address >> level) + begin) & place.mask);
}

/// The fields that every allocation reads, in one line that is hardly ever written.
struct alignas(64) Shared {
  std::atomic<Entry*> full_table{nullptr};         // null: the first table is in use
  std::atomic<std::uint64_t> threshold{0};         // smaller blocks are not entered; all ones: none is
  std::atomic<left_out::Map*> left_out{nullptr};   // of blocks below the threshold; null: none was ever left out
  std::atomic<std::uint32_t> look_for_modules{0};  // 1: see note_code_address()
  std::atomic<std::uint32_t> generation{1};        // of reports, 1..15: a fork begins a new one
};

/// The range of addresses in which a level has had blocks: a lookup skips levels whose range does not contain its
/// address.
struct Extent {
  std::atomic<std::uint64_t> inverted_begin{0};  // ~ the lowest first byte: as zero-initialised, none
  std::atomic<std::uint64_t> end{0};             // behind the highest last byte
};

/// Widens the extent of a level, by many kilobytes at a time: a heap that grows must not do so at each allocation, as
/// all threads read extents. Replaces the first table before it is too small. False: another thread is replacing it,
/// and the block, which would take an older one's place in the first table, must stay unnamed. Lock-free, any context.
[[nodiscard]] bool widen(unsigned level, std::uint64_t begin, std::uint64_t end);
/// The heap is larger than the first table, and there was no memory for the full one: blocks lose their places to newer
/// ones early. Signal-safe.
bool lacks_full_table();

// Hidden, and constant initialised as seen from every file: no detour through the GOT or a TLS wrapper.
extern constinit Shared shared __attribute__((visibility("hidden")));
extern constinit Entry first_table[first_layout.entries] __attribute__((visibility("hidden")));
extern constinit Extent extents[level_count] __attribute__((visibility("hidden"), aligned(64)));
/// The calling thread's latest stamp. A wrong value (a raw clone() shares it) only makes ages uncertain.
extern constinit thread_local std::uint64_t latest_stamp
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/// How many blocks the calling thread has allocated, by the logarithm of their size, which is found in two instructions
/// and needs no bounds; and how many, by watch_policy's classes, its process has been charged for. 32 bits that may
/// wrap.
struct MadeBlocks {
  std::array<std::uint32_t, 64> made;
  std::array<std::uint32_t, watch_policy::block_classes> charged;
};
extern constinit thread_local MadeBlocks made_blocks __asm__("crosstalk_made_blocks")
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
/// Returns the counts of the thread with this thread pointer. In a handler the register may hold another one, or
/// nothing.
MadeBlocks& made_blocks_of(std::uint64_t thread_pointer);

/// A stamp later than all of this thread's, and than those of other threads up to some nanoseconds ago: the time stamp
/// counter, which processors keep in step, in units of 16 ticks. A unit is shorter than a read of the counter, so a
/// thread that allocates as fast as it can does not run ahead of the others. A counter that threads shared would travel
/// between them. The 46 bits last for days; only nearness matters, see later().
inline std::uint64_t next_stamp() {
  constexpr unsigned unit = 4;
  const std::uint64_t now = __builtin_ia32_rdtsc() >> unit;
  latest_stamp = latest_stamp < now ? now : latest_stamp + 1;
  return latest_stamp;
}

/// True if stamp `a` is later than `b`. Right across the wrap of 46 bits.
constexpr bool later(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t ahead = (a - b) & stamp_mask;
  return ahead != 0 && ahead <= stamp_mask / 2;
}

/// Returns the entry in `full`, the full table, or, if that is null, in the first one.
inline Entry& entry_in(Entry* full, std::uint64_t address, unsigned level) {
  return full != nullptr ? full[slot_of(full_layout, address, level)]
                         : first_table[slot_of(first_layout, address, level)];
}
inline Entry& entry_of(std::uint64_t address, unsigned level) {
  return entry_in(shared.full_table.load(std::memory_order_acquire), address, level);
}

/// Enters a block of any size. Lock-free, any context; a few nanoseconds.
inline void insert(std::uint64_t begin, std::uint64_t bytes, std::uint64_t site, profile::BlockKind kind) {
  const unsigned level = level_of(bytes);
  if (begin == 0 || level > highest_level) {
    return;
  }
  const Extent& extent = extents[level - lowest_level];
  if (__builtin_expect(~begin > extent.inverted_begin.load(std::memory_order_relaxed) ||
                           begin + bytes > extent.end.load(std::memory_order_relaxed),
                       0) &&
      !widen(level, begin, begin + bytes)) {
    return;
  }
  const std::uint64_t stamp = next_stamp();
  const std::uint64_t packed = pack(site, stamp);
  Entry* full = shared.full_table.load(std::memory_order_acquire);
  while (true) {
    Entry& entry = entry_in(full, begin, level);
    put(entry.begin, begin);
    put(entry.bytes, bytes);
    put(entry.site, packed);
    put(entry.check, state(stamp, kind) ^ mix(begin, bytes, packed));
    Entry* const now = shared.full_table.load(std::memory_order_acquire);
    if (__builtin_expect(now == full, 1)) {
      break;
    }
    full = now;  // replaced meanwhile, and perhaps carried over before this block was in the first table
  }
  if (left_out::Map* const map = shared.left_out.load(std::memory_order_acquire); map != nullptr) {
    left_out::clear(*map, begin, bytes);
  }
}

/// Notes that a block was left out. Lock-free, any context.
inline void leave_out(std::uint64_t begin, std::uint64_t bytes) {
  left_out::Map* const map = shared.left_out.load(std::memory_order_acquire);
  if (map != nullptr && !left_out::is_set(*map, begin, bytes) && begin != 0) {
    left_out::set(*map, begin, bytes);
  }
}

inline void count(std::uint64_t bytes) { ++made_blocks.made[watch_policy::block_log(bytes)]; }
inline bool is_left_out(std::uint64_t bytes) { return bytes < shared.threshold.load(std::memory_order_acquire); }

/// A block has been allocated: counts it, and enters it or leaves it out. Lock-free, any context.
__attribute__((always_inline)) inline void note(std::uint64_t begin, std::uint64_t bytes, std::uint64_t site,
                                                profile::BlockKind kind) {
  count(bytes);
  if (is_left_out(bytes)) {
    leave_out(begin, bytes);
  } else {
    insert(begin, bytes, site, kind);
  }
}

/// Called before the threshold is raised. False: there is no memory to note the blocks that are left out.
bool may_leave_out();
/// Moves the threshold; false when it is not `from` (blocks are not tracked any more), or cannot be raised.
bool move_threshold(std::uint64_t from, std::uint64_t to);

/// Takes out the block that begins at `begin` and has `bytes`, if it is there. Lock-free, any context.
void remove(std::uint64_t begin, std::uint64_t bytes);

}  // namespace crosstalk::in_target::blocks
