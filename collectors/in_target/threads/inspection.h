// SPDX-License-Identifier: Apache-2.0
// Tells from /proc whether threads are in code of ours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// True if a thread of this process is in a handler of ours, or about to be. Signal-safe; some 30 us.
[[nodiscard]] bool in_handler(std::int32_t tid);

/// Checks that each thread, at one moment, is outside of our code, with no signal of ours on its way to it. Works in
/// parts if there are many threads. Large: not for a stack. Normal context.
class Inspection {
 public:
  enum class Found : std::uint8_t { nobody_inside, somebody_inside, not_all_seen };
  enum class Events : std::uint8_t { open, closed };
  void begin();
  /// Looks at the threads that have not been seen outside yet, as long as CPU time is left. `events`: `open` if threads
  /// may have open events; closed ones may have raised a signal that the kernel has not sent yet.
  Found go_on(Events events, std::uint64_t until_cpu_ns);

  static constexpr std::size_t at_once = 64;  // threads

 private:
  struct Look {
    std::int32_t tid = 0;
    bool outside = false;      // it was seen there
    std::uint64_t cpu_ns = 0;  // its CPU time at the first look; 0: it was not asked for
  };
  struct Looks {  // by thread id
    std::array<Look, at_once> look;
    std::size_t count = 0;
    bool more = false;  // there are other threads

    void insert(std::int32_t tid);
  };

  void list_threads();
  static bool is_outside(Look& look, Events events);

  std::int32_t seen_up_to_ = 0;  // all threads of ids up to this one were seen outside
  Looks looks_, former_;
};
}  // namespace crosstalk::in_target
