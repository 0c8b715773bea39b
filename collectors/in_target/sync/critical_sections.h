// SPDX-License-Identifier: Apache-2.0
// Counts the threads that ask for or hold OpenMP's critical sections. Runtime libraries have no function that tries to
// enter one, so a thread counts itself in before it asks, and out after it has given the section back. A thread that
// finds nobody counted does not wait, and need not look at the clock.
#pragma once

#include <atomic>
#include <cstdint>

namespace crosstalk::in_target {

class CriticalSection {
 public:
  /// Returns true if other threads hold the section or ask for it.
  bool enter() { return inside_.fetch_add(1, std::memory_order_relaxed) != 0; }
  void leave() { inside_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> inside_{0};  // a number: several may ask at the same time
};

/// Returns the section by the runtime library's name of it; sections that share an entry are measured more often than
/// necessary.
inline CriticalSection& critical_section(std::uint64_t id) {
  constexpr unsigned low_bits = 3;
  constexpr std::size_t sections = 64;
  static constinit CriticalSection all[sections];
  return all[(id >> low_bits) % sections];
}

}  // namespace crosstalk::in_target
