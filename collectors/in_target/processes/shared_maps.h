// SPDX-License-Identifier: Apache-2.0
// The parts of the address space that are mapped shared (MAP_SHARED, System V segments), and their files.
//
// The interposed functions enter and remove mappings. The kernel is asked for a mapping's identity when a sample first
// lies in it: most programs map files that no two processes touch, and pay for an entry only. Entries change hands by
// compare-and-swap of a tag with a generation, so no thread ever waits, wherever another one was interrupted.
#pragma once

#include <atomic>
#include <cstdint>

namespace crosstalk::in_target {

/// A shared mapping whose identity is known.
struct SharedPlace {
  std::uint64_t begin = 0, bytes = 0;
  std::uint64_t file_offset = 0;  // of `begin` in the mapped file
  std::uint64_t device = 0, inode = 0;
};

enum class SharedLookup : std::uint8_t { none, unidentified, unknown, found };

/// All-zero is the state without any mapping. Lock-free; find() and what follows it are signal-safe.
class SharedMaps {
 public:
  static constexpr std::uint32_t capacity = 256;  // mappings at a time

  /// A mapping was made. False, and nothing is entered, when there is no room.
  bool add(std::uint64_t begin, std::uint64_t bytes);
  /// Called before [begin, begin + bytes) is unmapped; the rest of a mapping on either side stays, to be identified
  /// anew. True if a mapping was touched.
  bool remove(std::uint64_t begin, std::uint64_t bytes);
  /// The mapping that begins at `begin` is about to be unmapped, as shmdt() does. True when there was one.
  bool remove_at(std::uint64_t begin);
  [[nodiscard]] bool empty() const { return extent_.load(std::memory_order_relaxed) == 0; }
  /// True if a mapping found no room since the last call.
  bool overflowed() { return overflowed_.exchange(false, std::memory_order_relaxed); }

  /// Finds the shared mapping at `address`; sets `place` if the result is `found`.
  [[nodiscard]] SharedLookup find(std::uint64_t address, SharedPlace& place) const;
  /// The right, and the duty, to identify the mapping at `address`: to one caller at a time. `place` gets its bounds.
  struct Claim {
    std::uint32_t entry = capacity;  // capacity: none
    std::uint64_t tag = 0;
    [[nodiscard]] bool granted() const { return entry < capacity; }
  };
  [[nodiscard]] Claim claim(std::uint64_t address, SharedPlace& place);
  enum class Outcome : std::uint8_t { identified, unknown, again };
  void settle(const Claim& claim, Outcome outcome, const SharedPlace& place);
  /// Returns this process's address of the byte at `file_offset`; 0 if it is not mapped, or not identified.
  [[nodiscard]] std::uint64_t address_of(std::uint64_t device, std::uint64_t inode, std::uint64_t file_offset) const;
  /// In a forked child, which has the same mappings: none counts as identified.
  void after_fork();

 private:
  enum State : std::uint64_t { free = 0, filling, unidentified, identifying, doomed, unknown, identified };
  static constexpr std::uint64_t state_mask = 7;
  struct Entry {
    std::atomic<std::uint64_t> tag;  // generation << 3 | State
    std::atomic<std::uint64_t> begin, end, file_offset, device, inode;
  };
  static State state_of(std::uint64_t tag) { return static_cast<State>(tag & state_mask); }
  static std::uint64_t with(std::uint64_t tag, State state) { return (tag & ~state_mask) | state; }
  static bool covers(const Entry& entry, std::uint64_t address);
  bool take_out(Entry& entry, std::uint64_t tag);
  [[nodiscard]] std::uint32_t extent() const { return extent_.load(std::memory_order_acquire); }

  Entry entries_[capacity];
  std::atomic<std::uint32_t> extent_;
  std::atomic<bool> overflowed_;
};

/// The process's.
SharedMaps& shared_maps();

}  // namespace crosstalk::in_target
