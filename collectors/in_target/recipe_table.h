// SPDX-License-Identifier: Apache-2.0
// Recipes by address: a direct-mapped table that handlers of all threads read and write without a lock, in
// zero-initialised storage, one line of the processor's caches each.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectors/in_target/access_cache.h"

namespace crosstalk::in_target {

/// As AccessCache: the key is mixed with a hash of the payload, so that an entry of two writers is taken for absent.
class RecipeTable {
 public:
  static constexpr std::size_t words = 7;
  static constexpr std::size_t entries = 4096;
  struct Payload {
    std::uint64_t word[words];
  };
  struct Candidate {
    Payload payload;
    std::uint64_t check;
    [[nodiscard]] bool holds(std::uint64_t key) const { return check == (key ^ hash(payload)); }
  };

  [[nodiscard]] Candidate at(std::uint64_t place) const {
    const Entry& entry = table_[slot(place)];
    Candidate found{};
    for (std::size_t i = 0; i < words; ++i) {
      found.payload.word[i] = entry.word[i].load(std::memory_order_relaxed);
    }
    found.check = entry.check.load(std::memory_order_relaxed);
    return found;
  }

  void put(std::uint64_t place, std::uint64_t key, const Payload& payload) {
    Entry& entry = table_[slot(place)];
    for (std::size_t i = 0; i < words; ++i) {
      entry.word[i].store(payload.word[i], std::memory_order_relaxed);
    }
    entry.check.store(key ^ hash(payload), std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Entry {
    std::atomic<std::uint64_t> word[words];
    std::atomic<std::uint64_t> check;
  };
  static std::uint64_t hash(const Payload& payload) {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : payload.word) {
      hash = AccessCache::mix(hash, word);
    }
    return hash;
  }
  static std::size_t slot(std::uint64_t place) { return (AccessCache::mix(0, place) >> 20U) % entries; }

  Entry table_[entries];
};

}  // namespace crosstalk::in_target
