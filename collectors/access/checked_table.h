// SPDX-License-Identifier: Apache-2.0
// Direct-mapped tables that handlers of all threads read and write without a lock, in zero-initialised storage.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// One round of a multiply-and-fold hash; never maps everything near zero to zero.
inline std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  const std::uint64_t product = (hash ^ value ^ 0x9e3779b97f4a7c15U) * 0xd6e8feb86659fd93U;
  return product ^ (product >> 32U);
}

/// An entry is a payload of `Words` words under a 64-bit key. It is stored as the payload, and the key mixed with a
/// hash of the payload. A reader that sees words of two writers computes a wrong key and takes the entry for absent, so
/// relaxed atomics suffice. Words + 1 is a power of two: no entry straddles a line of the processor's caches.
/// `Neighbours` consecutive places, from a multiple of it, are adjacent: reading several of them touches one page.
template <std::size_t Words, std::size_t Entries, std::size_t Neighbours = 1>
class CheckedTable {
 public:
  struct Payload {
    std::uint64_t word[Words];
  };

  /// The payload that lies at `place`; the caller checks it with holds().
  struct Candidate {
    Payload payload;
    std::uint64_t check;
    [[nodiscard]] bool holds(std::uint64_t key) const { return check == (key ^ hash(payload)); }
  };

  [[nodiscard]] Candidate at(std::uint64_t place) const {
    const Entry& entry = table_[slot(place)];
    Candidate found{};
    for (std::size_t i = 0; i < Words; ++i) {
      found.payload.word[i] = entry.word[i].load(std::memory_order_relaxed);
    }
    found.check = entry.check.load(std::memory_order_relaxed);
    return found;
  }

  void put(std::uint64_t place, std::uint64_t key, const Payload& payload) {
    Entry& entry = table_[slot(place)];
    for (std::size_t i = 0; i < Words; ++i) {
      entry.word[i].store(payload.word[i], std::memory_order_relaxed);
    }
    entry.check.store(key ^ hash(payload), std::memory_order_relaxed);
  }

 private:
  struct alignas((Words + 1) * sizeof(std::uint64_t)) Entry {
    std::atomic<std::uint64_t> word[Words];
    std::atomic<std::uint64_t> check;
  };
  static std::uint64_t hash(const Payload& payload) {
    std::uint64_t hash = 0;
    for (const std::uint64_t word : payload.word) {
      hash = mix(hash, word);
    }
    return hash;
  }
  static std::size_t slot(std::uint64_t place) {
    static_assert(Entries % Neighbours == 0);
    return (mix(0, place / Neighbours) >> 20U) % (Entries / Neighbours) * Neighbours + place % Neighbours;
  }

  alignas(Neighbours * sizeof(Entry)) Entry table_[Entries];
};

}  // namespace crosstalk::in_target
