// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/processes/shared_maps.h"

namespace crosstalk::in_target {
namespace {

constinit SharedMaps the_maps;

}  // namespace

SharedMaps& shared_maps() { return the_maps; }

bool SharedMaps::covers(const Entry& entry, std::uint64_t address) {
  return entry.begin.load(std::memory_order_relaxed) <= address && address < entry.end.load(std::memory_order_relaxed);
}

bool SharedMaps::add(std::uint64_t begin, std::uint64_t bytes) {
  for (std::uint32_t i = 0; i < capacity; ++i) {
    Entry& entry = entries_[i];
    std::uint64_t tag = entry.tag.load(std::memory_order_relaxed);
    if (state_of(tag) != free || !entry.tag.compare_exchange_strong(tag, with(tag, filling))) {
      continue;
    }
    entry.begin.store(begin, std::memory_order_relaxed);
    entry.end.store(begin + bytes, std::memory_order_relaxed);
    const std::uint64_t next_generation = (tag | state_mask) + 1;
    entry.tag.store(with(next_generation, unidentified), std::memory_order_release);
    std::uint32_t extent = extent_.load(std::memory_order_relaxed);
    while (extent <= i && !extent_.compare_exchange_weak(extent, i + 1)) {
    }
    return true;
  }
  overflowed_.store(true, std::memory_order_relaxed);
  return false;
}

// Frees the entry, or dooms it while a thread identifies the mapping; that thread then frees it.
bool SharedMaps::take_out(Entry& entry, std::uint64_t tag) {
  while (true) {
    const State state = state_of(tag);
    if (state == free || state == filling || state == doomed) {
      return false;
    }
    const std::uint64_t same = tag & ~state_mask;
    if (entry.tag.compare_exchange_strong(tag, with(tag, state == identifying ? doomed : free))) {
      return true;
    }
    if ((tag & ~state_mask) != same) {
      return false;  // another mapping by now
    }
  }
}

bool SharedMaps::remove(std::uint64_t begin, std::uint64_t bytes) {
  const std::uint64_t end = begin + bytes;
  bool touched = false;
  for (std::uint32_t i = 0, count = extent(); i < count; ++i) {
    Entry& entry = entries_[i];
    const std::uint64_t tag = entry.tag.load(std::memory_order_acquire);
    const std::uint64_t low = entry.begin.load(std::memory_order_relaxed);
    const std::uint64_t high = entry.end.load(std::memory_order_relaxed);
    if (low >= end || high <= begin || !take_out(entry, tag)) {
      continue;
    }
    touched = true;
    if (low < begin) {
      add(low, begin - low);
    }
    if (high > end) {
      add(end, high - end);
    }
  }
  return touched;
}

bool SharedMaps::remove_at(std::uint64_t begin) {
  for (std::uint32_t i = 0, count = extent(); i < count; ++i) {
    Entry& entry = entries_[i];
    const std::uint64_t tag = entry.tag.load(std::memory_order_acquire);
    if (entry.begin.load(std::memory_order_relaxed) == begin && take_out(entry, tag)) {
      return true;
    }
  }
  return false;
}

SharedLookup SharedMaps::find(std::uint64_t address, SharedPlace& place) const {
  for (std::uint32_t i = 0, count = extent(); i < count; ++i) {
    const Entry& entry = entries_[i];
    const std::uint64_t tag = entry.tag.load(std::memory_order_acquire);
    const State state = state_of(tag);
    if (state < unidentified || state == doomed || !covers(entry, address)) {
      continue;
    }
    if (state != identified) {
      return state == unknown ? SharedLookup::unknown : SharedLookup::unidentified;
    }
    place.begin = entry.begin.load(std::memory_order_relaxed);
    place.bytes = entry.end.load(std::memory_order_relaxed) - place.begin;
    place.file_offset = entry.file_offset.load(std::memory_order_relaxed);
    place.device = entry.device.load(std::memory_order_relaxed);
    place.inode = entry.inode.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    return entry.tag.load(std::memory_order_relaxed) == tag ? SharedLookup::found : SharedLookup::none;
  }
  return SharedLookup::none;
}

SharedMaps::Claim SharedMaps::claim(std::uint64_t address, SharedPlace& place) {
  for (std::uint32_t i = 0, count = extent(); i < count; ++i) {
    Entry& entry = entries_[i];
    std::uint64_t tag = entry.tag.load(std::memory_order_acquire);
    if (state_of(tag) != unidentified || !covers(entry, address)) {
      continue;
    }
    place.begin = entry.begin.load(std::memory_order_relaxed);
    place.bytes = entry.end.load(std::memory_order_relaxed) - place.begin;
    if (entry.tag.compare_exchange_strong(tag, with(tag, identifying))) {
      return {i, with(tag, identifying)};
    }
  }
  return {};
}

void SharedMaps::settle(const Claim& claim, Outcome outcome, const SharedPlace& place) {
  Entry& entry = entries_[claim.entry];
  entry.file_offset.store(place.file_offset, std::memory_order_relaxed);
  entry.device.store(place.device, std::memory_order_relaxed);
  entry.inode.store(place.inode, std::memory_order_relaxed);
  const State next = outcome == Outcome::identified ? identified : outcome == Outcome::unknown ? unknown : unidentified;
  std::uint64_t tag = claim.tag;
  if (!entry.tag.compare_exchange_strong(tag, with(tag, next), std::memory_order_release)) {
    entry.tag.store(with(tag, free), std::memory_order_release);  // it was doomed meanwhile
  }
}

std::uint64_t SharedMaps::address_of(std::uint64_t device, std::uint64_t inode, std::uint64_t file_offset) const {
  for (std::uint32_t i = 0, count = extent(); i < count; ++i) {
    const Entry& entry = entries_[i];
    const std::uint64_t tag = entry.tag.load(std::memory_order_acquire);
    if (state_of(tag) != identified || entry.device.load(std::memory_order_relaxed) != device ||
        entry.inode.load(std::memory_order_relaxed) != inode) {
      continue;
    }
    const std::uint64_t begin = entry.begin.load(std::memory_order_relaxed);
    const std::uint64_t into = file_offset - entry.file_offset.load(std::memory_order_relaxed);
    const bool inside = into < entry.end.load(std::memory_order_relaxed) - begin;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (inside && entry.tag.load(std::memory_order_relaxed) == tag) {
      return begin + into;
    }
  }
  return 0;
}

// In the child, other threads' operations never complete.
void SharedMaps::after_fork() {
  for (std::uint32_t i = 0, count = extent(); i < count; ++i) {
    Entry& entry = entries_[i];
    const std::uint64_t tag = entry.tag.load(std::memory_order_relaxed);
    const State state = state_of(tag);
    const bool gone = state == free || state == filling || state == doomed;
    entry.tag.store(with(tag, gone ? free : unidentified), std::memory_order_relaxed);
  }
}

}  // namespace crosstalk::in_target
