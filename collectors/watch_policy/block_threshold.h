// SPDX-License-Identifier: Apache-2.0
// From which size on heap blocks are entered into the block table: all, until entering them takes more than its part of
// the budget.
//
// A leaky bucket of CPU time: entering fills it, the program's running empties it. A program that allocates much when
// it starts and then computes keeps all its blocks; one that goes on allocating has the smallest left out, of which
// there are most, up to the size from which on the rest is affordable. Sizes are tried again one class at a time, each
// after the bucket has drained some way: the threshold does not swing with every burst.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace crosstalk::watch_policy {

/// Classes of sizes: below 32 bytes, then by powers of two; the last one, 16 KiB and more, is always entered.
inline constexpr std::uint32_t block_classes = 11;

/// 4 for all of class 0.
constexpr std::uint32_t block_log(std::uint64_t bytes) {
  return static_cast<std::uint32_t>(63 - std::countl_zero(bytes | 31U));
}
constexpr std::uint32_t class_of_log(std::uint32_t log) { return std::min(log - 4, block_classes - 1); }
constexpr std::uint32_t block_class(std::uint64_t bytes) { return class_of_log(block_log(bytes)); }
/// The least size of a class, bytes.
constexpr std::uint64_t least_block(std::uint32_t size_class) {
  return size_class == 0 ? 0 : std::uint64_t{16} << size_class;
}

using BlockCounts = std::array<std::uint64_t, block_classes>;

/// The time to enter a block, including the lines that it displaces from the caches: 20 ns if the same memory is
/// allocated again and again, 125 if the heap is larger than a cache (docs/overhead.md, "Allocation").
inline constexpr std::uint64_t block_entry_ns = 100;

/// Returns the cost of entering the blocks of `made` that are of class `first` and above.
constexpr std::uint64_t entry_cost_ns(const BlockCounts& made, std::uint32_t first) {
  std::uint64_t count = 0;
  for (std::uint32_t i = first; i < block_classes; ++i) {
    count += made[i];
  }
  return count * block_entry_ns;
}

/// The least class from which on entering `made` takes at most `allowed_ns`; the last one at the highest.
constexpr std::uint32_t affordable_class(const BlockCounts& made, std::uint64_t allowed_ns) {
  std::uint32_t first = block_classes - 1;
  std::uint64_t cost_ns = made[first] * block_entry_ns;
  while (first > 0 && cost_ns + made[first - 1] * block_entry_ns <= allowed_ns) {
    --first;
    cost_ns += made[first] * block_entry_ns;
  }
  return first;
}

/// One for a process; not thread-safe. All amounts are nanoseconds of CPU time, of all threads.
class BlockThreshold {
 public:
  /// Called after the program has run for `cpu_ns` more and made these blocks; entering blocks may take `share` of its
  /// time. Returns the class from which on blocks are entered.
  std::uint32_t review(const BlockCounts& made, std::uint64_t cpu_ns, double share) {
    const double allowed = static_cast<double>(cpu_ns) * share;
    const double level = level_ns_ + static_cast<double>(entry_cost_ns(made, first_)) - allowed;
    level_ns_ = std::clamp(level, 0.0, 2 * capacity_ns);
    const std::uint32_t affordable = affordable_class(made, static_cast<std::uint64_t>(allowed));
    if (level_ns_ > capacity_ns) {
      first_ = std::max(first_, affordable);
    } else if (level_ns_ < capacity_ns / 2 && affordable < first_) {
      --first_;
      level_ns_ = capacity_ns * 3 / 4;
    }
    return first_;
  }

 private:
  static constexpr double capacity_ns = 10'000'000;

  double level_ns_ = 0;
  std::uint32_t first_ = 0;
};

}  // namespace crosstalk::watch_policy
