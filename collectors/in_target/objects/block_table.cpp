// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/objects/block_table.h"

#include <sys/mman.h>

#include <algorithm>

#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace blocks {

constinit Shared shared;
constinit Entry first_table[first_layout.entries] = {};  // touched as the heap grows
constinit Extent extents[level_count] = {};
constinit thread_local std::uint64_t latest_stamp = 0;
constinit thread_local MadeBlocks made_blocks{};

MadeBlocks& made_blocks_of(std::uint64_t thread_pointer) {
  // The offset from the thread pointer is the same in all threads, and the loader has written it before anything of
  // this library runs: there is no moment at which a handler could find it unset.
  std::uint64_t offset = 0;
  asm("movq crosstalk_made_blocks@gottpoff(%%rip), %0" : "=r"(offset));
  return *reinterpret_cast<MadeBlocks*>(thread_pointer + offset);  // NOLINT: an address
}

namespace {

/// An entry's fields, read once.
struct Copy {
  std::uint64_t begin, bytes, site, check, state;
};

Copy copy_of(Entry& entry) {
  Copy c{get(entry.begin), get(entry.bytes), get(entry.site), get(entry.check), 0};
  c.state = c.check ^ mix(c.begin, c.bytes, c.site);
  return c;
}

bool whole(const Copy& c) { return c.begin != 0 && (c.state & magic_mask) == magic; }

// True if `copy` was entered by a later allocation than `other`.
bool newer(const Copy& copy, const Copy& other) {
  return later(stamp_of(copy.state, copy.site), stamp_of(other.state, other.site));
}

struct Newest {
  Entry* entry = nullptr;
  Copy copy{};
};

// From the full table's publication until all is carried over, the first table may have entries that the full one
// lacks.
constinit std::atomic<bool> being_replaced{false};

void probe(Entry* table, std::uint64_t address, unsigned level, Newest& newest) {
  const std::uint64_t granule = std::uint64_t{1} << level;
  for (std::uint64_t back = 0; back <= 2 && back * granule <= address; ++back) {
    Entry& entry = entry_in(table, address - back * granule, level);
    const Copy c = copy_of(entry);
    if (whole(c) && c.begin <= address && address - c.begin < c.bytes &&
        (newest.entry == nullptr || newer(c, newest.copy))) {
      newest = {&entry, c};
    }
  }
}

bool covers(const Extent& extent, std::uint64_t address) {
  return ~address <= extent.inverted_begin.load(std::memory_order_relaxed) &&
         address < extent.end.load(std::memory_order_relaxed);
}

void raise(std::atomic<std::uint64_t>& word, std::uint64_t value) {
  std::uint64_t known = word.load(std::memory_order_relaxed);
  while (known < value && !word.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

/// True for the one caller that marks the block as reported in this generation.
bool mark_reported(Entry& entry, const Copy& c) {
  const std::uint64_t generation = shared.generation.load(std::memory_order_relaxed);
  const std::uint64_t flips = generation_of(c.state) ^ generation;
  std::uint64_t expected = c.check;
  return flips != 0 &&
         std::atomic_ref(entry.check).compare_exchange_strong(expected, c.check ^ flips, std::memory_order_relaxed);
}

// Enters the first table's entries into `table`, except where it has something as new.
void carry_over(Entry* table) {
  for (unsigned level = lowest_level; level <= highest_level; ++level) {
    const LevelPlace place = first_layout.places[level - lowest_level];
    for (std::uint32_t i = place.first; i <= place.first + place.mask; ++i) {
      const std::uint64_t begin = get(first_table[i].begin);
      if (begin == 0) {
        continue;
      }
      Entry& entry = table[slot_of(full_layout, begin, level)];
      // The page is made writable first: a fault between looking and writing would be time for others to write.
      std::atomic_ref(entry.begin).fetch_or(0, std::memory_order_relaxed);
      const Copy c = copy_of(first_table[i]);
      const Copy there = copy_of(entry);
      if (whole(c) && c.begin == begin && (!whole(there) || newer(c, there))) {
        put(entry.begin, c.begin);
        put(entry.bytes, c.bytes);
        put(entry.site, c.site);
        put(entry.check, c.check);
      }
    }
  }
}

constinit std::atomic<bool> no_full_table{false};
constinit std::atomic<bool> replacing{false};  // or done, or refused

// Tries once: if there is no memory for the full table, the first one stays.
void replace_first_table() {
  if (replacing.exchange(true, std::memory_order_relaxed)) {
    return;
  }
  constexpr std::size_t bytes = (full_layout.entries * sizeof(Entry) + page_bytes - 1) & ~(page_bytes - 1);
  auto* const table = static_cast<Entry*>(map_own_memory(bytes));
  if (table == nullptr) {
    no_full_table.store(true, std::memory_order_release);
    return;
  }
  being_replaced.store(true, std::memory_order_relaxed);
  shared.full_table.store(table, std::memory_order_release);
  carry_over(table);
  being_replaced.store(false, std::memory_order_release);
}

}  // namespace

bool lacks_full_table() { return no_full_table.load(std::memory_order_relaxed); }

namespace {

struct Bounds {
  std::uint64_t begin, end;
};

// Returns the extent of a level widened to contain [begin, end), by many kilobytes at a time.
Bounds widened(const Extent& extent, std::uint64_t begin, std::uint64_t end, bool full) {
  const std::uint64_t within = (std::uint64_t{1} << (full ? 20U : 16U)) - 1;
  return {std::min(begin & ~within, ~extent.inverted_begin.load(std::memory_order_relaxed)),
          std::max((end | within) + 1, extent.end.load(std::memory_order_relaxed))};
}

bool fits_first_table(const Bounds& bounds, unsigned level) {
  const std::uint64_t last = bounds.end - 1;
  return bounds.begin >> range_bits == last >> range_bits &&
         (last - bounds.begin) >> level <= first_layout.places[level - lowest_level].mask;
}

}  // namespace

bool widen(unsigned level, std::uint64_t begin, std::uint64_t end) {
  Extent& extent = extents[level - lowest_level];
  bool full = shared.full_table.load(std::memory_order_acquire) != nullptr;
  if (!full && !fits_first_table(widened(extent, begin, end, full), level)) {
    replace_first_table();
    full = shared.full_table.load(std::memory_order_acquire) != nullptr;
    if (!full && !no_full_table.load(std::memory_order_acquire)) {
      return false;
    }
  }
  const Bounds bounds = widened(extent, begin, end, full);
  raise(extent.inverted_begin, ~bounds.begin);
  raise(extent.end, bounds.end);
  return true;
}

namespace {

constexpr std::size_t left_out_bytes = (sizeof(left_out::Map) + page_bytes - 1) & ~(page_bytes - 1);
constinit std::atomic<left_out::Map*> spare_map{nullptr};  // of a session that is over

void put_map_aside() {
  if (left_out::Map* const map = shared.left_out.exchange(nullptr, std::memory_order_acq_rel); map != nullptr) {
    spare_map.store(map, std::memory_order_release);
  }
}

// A map that was put aside may still be written by its earlier users: then it marks too much, which is safe.
left_out::Map* left_out_map() {
  left_out::Map* const spare = spare_map.exchange(nullptr, std::memory_order_acq_rel);
  return spare != nullptr ? spare : static_cast<left_out::Map*>(map_own_memory(left_out_bytes));
}

}  // namespace

bool may_leave_out() {
  if (shared.left_out.load(std::memory_order_acquire) != nullptr) {
    return true;
  }
  // Asks once: if a limit refuses the memory, asking takes system calls, and each review would ask again.
  static constinit std::atomic<bool> refused{false};
  if (refused.load(std::memory_order_relaxed)) {
    return false;
  }
  auto* const fresh = left_out_map();
  refused.store(fresh == nullptr, std::memory_order_relaxed);
  left_out::Map* known = nullptr;
  // If two threads come here at once, one's memory stays unused, and untouched.
  return fresh != nullptr && (shared.left_out.compare_exchange_strong(known, fresh) || known != nullptr);
}

bool move_threshold(std::uint64_t from, std::uint64_t to) {
  return (to == 0 || may_leave_out()) && shared.threshold.compare_exchange_strong(from, to, std::memory_order_release);
}

void remove(std::uint64_t begin, std::uint64_t bytes) {
  const unsigned level = level_of(bytes);
  if (level > highest_level) {
    return;
  }
  Entry& entry = entry_of(begin, level);
  if (get(entry.begin) == begin) {
    put(entry.begin, 0);
  }
}

}  // namespace blocks

bool find_block(std::uint64_t address, BlockInfo& out) {
  using namespace blocks;
  Newest newest;
  const left_out::Map* const map = shared.left_out.load(std::memory_order_acquire);
  if (map != nullptr && left_out::holds(*map, address)) {
    return false;
  }
  Entry* const full = shared.full_table.load(std::memory_order_acquire);
  const bool both = being_replaced.load(std::memory_order_acquire);
  for (unsigned level = lowest_level; level <= highest_level; ++level) {
    if (covers(extents[level - lowest_level], address)) {
      probe(full, address, level, newest);
      if (both && full != nullptr) {
        probe(nullptr, address, level, newest);
      }
    }
  }
  if (newest.entry == nullptr) {
    return false;
  }
  const Copy& c = newest.copy;
  out = {c.begin, c.bytes, c.site & site_mask, kind_of(c.state), mark_reported(*newest.entry, c)};
  return true;
}

void track_blocks(bool on, std::uint64_t threshold_bytes) {
  constexpr std::uint64_t never = ~std::uint64_t{0};
  const bool possible = on && (threshold_bytes <= 1 || blocks::may_leave_out());
  blocks::shared.threshold.store(possible ? threshold_bytes : never, std::memory_order_release);
  if (!possible) {
    blocks::put_map_aside();  // nobody asks any more
  }
}

void forget_blocks() {
  using namespace blocks;
  put_map_aside();
  if (left_out::Map* const map = spare_map.load(std::memory_order_acquire); map != nullptr) {
    system_call(SYS_madvise, map, left_out_bytes, MADV_DONTNEED);  // zero again
  }
  Entry* const full = shared.full_table.load(std::memory_order_acquire);
  for (std::size_t i = 0; full != nullptr && i < full_layout.entries; ++i) {
    if (get(full[i].begin) != 0) {
      put(full[i].begin, 0);
    }
  }
  for (Entry& entry : first_table) {
    if (get(entry.begin) != 0) {
      put(entry.begin, 0);
    }
  }
}

void blocks_after_fork() {
  if (blocks::shared.full_table.load(std::memory_order_relaxed) == nullptr) {
    blocks::replacing.store(false, std::memory_order_relaxed);  // the parent's thread that was at it is not here
  }
  const std::uint32_t now = blocks::shared.generation.load(std::memory_order_relaxed);
  blocks::shared.generation.store(now % 15 + 1, std::memory_order_relaxed);
}

}  // namespace crosstalk::in_target
