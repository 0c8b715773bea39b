// SPDX-License-Identifier: Apache-2.0
// The target's memory as the access finder sees it from a handler.
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/access/finder.h"
#include "collectors/in_target/core/thread_state.h"

namespace crosstalk::in_target {

/// Reads the target's memory during one interruption of a thread. Reads directly the code on the page that the thread
/// executes, and the used part of its stack unless the stack is nearly used up: both are mapped, and no watchpoint of
/// this thread lies on them. The kernel reads everything else for us, which takes some microseconds and cannot fault.
/// Signal-safe.
///
/// Reads no code if the program's thread pointer points to nothing: the decoder belongs to a library whose functions
/// read their stack guard through that pointer.
class TargetView {
 public:
  TargetView(const ThreadState& self, const Registers& registers);
  /// Refers to this view.
  CodeReader reader();

 private:
  static bool read_code(void* view, std::uint64_t address, void* out, std::size_t bytes);
  static bool read_data(void* view, std::uint64_t address, void* out, std::size_t bytes);
  static bool read_now(void* view, std::uint64_t address, void* out, std::size_t bytes);
  bool read_stack(std::uint64_t address, void* out, std::size_t bytes) const;

  std::uint64_t ip_;
  bool can_decode_;
  // [stack_begin_, stack_end_): empty if the thread runs on another stack, or near its end
  std::uint64_t stack_begin_;
  std::uint64_t stack_end_;
};

}  // namespace crosstalk::in_target
