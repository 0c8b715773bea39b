// SPDX-License-Identifier: Apache-2.0
// Counts the threads in OpenMP's critical sections. Runtime libraries have no function that tries to enter one, so a
// thread inside says so, and a thread that finds nobody inside need not look at the clock. A thread that comes between
// another's entry and its notice of that waits for some nanoseconds that are not measured.
#pragma once

#include <atomic>
#include <cstdint>

namespace crosstalk::in_target {

class CriticalSection {
 public:
  [[nodiscard]] bool taken() const { return inside_.load(std::memory_order_relaxed) != 0; }
  /// Returns true if other threads were inside already.
  bool enter() { return inside_.fetch_add(1, std::memory_order_relaxed) != 0; }
  void leave() { inside_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> inside_{0};  // a number: a leaving thread may count itself out after the next one enters
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
