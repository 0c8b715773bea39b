// SPDX-License-Identifier: Apache-2.0
// The bulletin board: records the lines that were sampled lately, by which two threads, at which bytes. It makes a line
// *suspected* of being exchanged, and names the partner's bytes, without a debug register.
//
// Written by all threads' handlers with relaxed atomics. Words of an entry may be of two writers: an entry is a hint,
// which hardware watchpoints check. Signal-safe, bounded, never waits.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>

#include "base/registers.h"
#include "profile/watch_settings.h"

namespace crosstalk::watch_policy {

/// One sampled access, packed into a word so that it is read whole.
struct Publication {
  std::uint16_t thread = 0;            // its number (ThreadState); 0: none
  std::uint8_t offset = 0;             // in the line
  std::uint8_t width = 0;              // bytes
  AccessKind kind = AccessKind::none;  // all kinds seen of this thread since it was published first
  std::uint32_t time_ms = 0;           // CLOCK_MONOTONIC

  [[nodiscard]] constexpr std::uint64_t packed() const {
    return static_cast<std::uint64_t>(thread) | static_cast<std::uint64_t>(offset & 63U) << 16U |
           static_cast<std::uint64_t>(width & 127U) << 22U | static_cast<std::uint64_t>(kind) << 29U |
           static_cast<std::uint64_t>(time_ms) << 32U;
  }
  [[nodiscard]] static constexpr Publication unpacked(std::uint64_t word) {
    return {static_cast<std::uint16_t>(word & 0xffffU), static_cast<std::uint8_t>((word >> 16U) & 63U),
            static_cast<std::uint8_t>((word >> 22U) & 127U), static_cast<AccessKind>((word >> 29U) & 3U),
            static_cast<std::uint32_t>(word >> 32U)};
  }
};

/// True if `time_ms` was before `then_ms`. They may have wrapped around, and are less than 24 days apart.
[[nodiscard]] constexpr bool is_before_ms(std::uint32_t time_ms, std::uint32_t then_ms) {
  return static_cast<std::int32_t>(time_ms - then_ms) < 0;
}

/// The board's knowledge of a line when a sample came.
struct Suspicion {
  bool other_thread = false;  // another thread was sampled there
  bool store_seen = false;    // by any thread
  std::uint32_t duds = 0;     // watches that found no exchange since the last that did
  std::uint32_t hits = 0;     // watches that found one
  Publication partner;  // the other thread's access; that thread may have ended, and its number be another's by now
};

/// The knowledge of one line, at the place that a hash function gives. All-zero at first.
class BoardLine {
 public:
  /// Publishes a sampled access and returns the earlier knowledge of its line. `begun_ms`: when the thread began, in
  /// the time of publications; earlier publications under its number are another thread's.
  Suspicion publish(std::uint64_t line, const Publication& access, std::uint32_t begun_ms = 0) {
    if (line_.load(std::memory_order_relaxed) != line) {
      line_.store(line, std::memory_order_relaxed);
      latest_.store(access.packed(), std::memory_order_relaxed);
      other_.store(0, std::memory_order_relaxed);
      duds_.store(0, std::memory_order_relaxed);
      hits_.store(0, std::memory_order_relaxed);
      return {};
    }
    const Publication latest = Publication::unpacked(latest_.load(std::memory_order_relaxed));
    const Publication other = Publication::unpacked(other_.load(std::memory_order_relaxed));
    Suspicion known;
    known.duds = duds_.load(std::memory_order_relaxed);
    known.hits = hits_.load(std::memory_order_relaxed);
    known.store_seen = stores(access.kind) || stores(latest.kind) || stores(other.kind);
    const auto is_own = [&](const Publication& published) {
      return published.thread == access.thread && !is_before_ms(published.time_ms, begun_ms);
    };
    const bool again = is_own(latest);
    known.partner = again ? other : latest;
    known.other_thread = known.partner.thread != 0 && !is_own(known.partner);
    Publication mine = access;
    if (again) {
      mine.kind = static_cast<AccessKind>(static_cast<unsigned>(mine.kind) | static_cast<unsigned>(latest.kind));
    } else {
      other_.store(latest.packed(), std::memory_order_relaxed);
    }
    latest_.store(mine.packed(), std::memory_order_relaxed);
    return known;
  }

  /// A watch on the line ended: an exchange was seen, or none.
  void judged(std::uint64_t line, bool exchange) {
    if (line_.load(std::memory_order_relaxed) != line) {
      return;
    }
    const std::uint32_t duds = duds_.load(std::memory_order_relaxed);
    duds_.store(exchange ? 0 : duds + 1, std::memory_order_relaxed);
    if (exchange) {
      hits_.fetch_add(1, std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<std::uint64_t> line_;
  std::atomic<std::uint64_t> latest_;  // Publication
  std::atomic<std::uint64_t> other_;   // the latest of another thread than `latest_`
  std::atomic<std::uint32_t> duds_;
  std::atomic<std::uint32_t> hits_;
};

class Board {
 public:
  static constexpr std::uint32_t most_slots = profile::board_slots_most;

  /// Sets how many lines can be remembered, before anything is published. Ignores a number that is no power of two
  /// within the bounds (the other side may be corrupt).
  void start(std::uint32_t slots) {
    if (std::has_single_bit(slots) && slots >= profile::board_slots_least && slots <= most_slots) {
      bits_beyond_ = std::countr_zero(slots) - usual_bits;
    }
  }

  /// As BoardLine's.
  Suspicion publish(std::uint64_t line, const Publication& access, std::uint32_t begun_ms = 0) {
    return lines_[hash(line)].publish(line, access, begun_ms);
  }
  void judged(std::uint64_t line, bool exchange) { lines_[hash(line)].judged(line, exchange); }

 private:
  [[nodiscard]] std::uint32_t hash(std::uint64_t line) const {
    return static_cast<std::uint32_t>(((line >> 6U) * 0x9e3779b97f4a7c15U) >> (64 - usual_bits - bits_beyond_));
  }

  static constexpr int usual_bits = 12;
  int bits_beyond_ = 0;  // log2(slots), beyond those
  // Slots of which no use is made are never touched, so they take no memory.
  BoardLine lines_[most_slots];
};

}  // namespace crosstalk::watch_policy
