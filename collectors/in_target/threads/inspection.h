// SPDX-License-Identifier: Apache-2.0
// Tells from /proc whether threads are in our code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// True if a thread of this process blocks all signals, as our handlers do, or has a signal of ours pending.
/// Signal-safe; some 30 us.
[[nodiscard]] bool in_handler(std::int32_t tid);

/// Checks that each thread was seen outside of our code at least once, with no signal of ours on its way to it. Each
/// thread has a moment of its own. Works in parts if there are many threads. Too large for a stack. Not for signal
/// handlers.
class Inspection {
 public:
  enum class Found : std::uint8_t { nobody_inside, somebody_inside, not_all_seen };
  enum class Events : std::uint8_t { open, closed };
  void begin();
  /// Looks at the threads that have not been seen outside yet: at least `at_once` of them, and more as long as CPU time
  /// is left. `events`: `open` if threads may have open events. If they were just `closed`, the kernel may still owe a
  /// signal, so a running thread counts as outside only after 1 ms more of CPU time.
  Found go_on(Events events, std::uint64_t until_cpu_ns);

  static constexpr std::size_t at_once = 64;  // threads

 private:
  struct Look {
    std::int32_t tid = 0;
    bool outside = false;      // it was seen there
    std::uint64_t cpu_ns = 0;  // its CPU time at the first look; 0: not read yet
  };
  struct Looks {  // by thread id
    std::array<Look, at_once> look;
    std::size_t count = 0;
    bool more = false;  // there are other threads

    void insert(std::int32_t tid);
  };

  void list_threads();
  static bool is_outside(Look& look, Events events);

  std::int32_t seen_up_to_ = 0;  // the highest id up to which all threads were seen outside
  Looks looks_, former_;
};
}  // namespace crosstalk::in_target
