// SPDX-License-Identifier: Apache-2.0
// What has been learned of code, by address: a direct-mapped table that handlers of all threads read and write
// without a lock, in zero-initialised storage.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// An entry is 24 bytes of payload under a 64-bit key. It is stored as four words: the payload, and the key mixed
/// with a hash of the payload. A reader that sees words of two writers computes a wrong key and takes the entry
/// for absent, so relaxed atomics suffice; the key itself covers the address and the bytes of code that the
/// payload was made from, so that rewritten code misses.
class AccessCache {
 public:
  struct Payload {
    std::uint64_t word[3];
  };
  static constexpr std::size_t entries = 8192;

  /// The payload that lies where `address` maps to; the caller checks it with holds().
  struct Candidate {
    Payload payload;
    std::uint64_t check;
    [[nodiscard]] bool holds(std::uint64_t key) const { return check == (key ^ hash(payload)); }
  };

  [[nodiscard]] Candidate at(std::uint64_t address, std::uint64_t kind) const {
    const Entry& entry = table_[slot(address, kind)];
    Candidate found{};
    for (std::size_t i = 0; i < 3; ++i) {
      found.payload.word[i] = entry.word[i].load(std::memory_order_relaxed);
    }
    found.check = entry.check.load(std::memory_order_relaxed);
    return found;
  }

  void put(std::uint64_t address, std::uint64_t kind, std::uint64_t key, const Payload& payload) {
    Entry& entry = table_[slot(address, kind)];
    for (std::size_t i = 0; i < 3; ++i) {
      entry.word[i].store(payload.word[i], std::memory_order_relaxed);
    }
    entry.check.store(key ^ hash(payload), std::memory_order_relaxed);
  }

  /// One round of a multiply-and-fold hash; never maps everything near zero to zero.
  static std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    const std::uint64_t product = (hash ^ value ^ 0x9e3779b97f4a7c15U) * 0xd6e8feb86659fd93U;
    return product ^ (product >> 32U);
  }

 private:
  struct Entry {
    std::atomic<std::uint64_t> word[3];
    std::atomic<std::uint64_t> check;
  };

  static std::uint64_t hash(const Payload& payload) {
    return mix(mix(mix(0, payload.word[0]), payload.word[1]), payload.word[2]);
  }
  /// Kinds are set far apart: neighbouring addresses must not meet by their kinds.
  static std::size_t slot(std::uint64_t address, std::uint64_t kind) {
    return (mix(0, address + (kind << 56U)) >> 20U) % entries;
  }

  Entry table_[entries];
};

}  // namespace crosstalk::in_target
