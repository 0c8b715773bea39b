// SPDX-License-Identifier: Apache-2.0
// The target's memory as the access finder sees it from a handler.
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/in_target/access/finder.h"
#include "collectors/in_target/threads/thread_state.h"

namespace crosstalk::in_target {

/// For one interruption of a thread. The code on the page that it executes and the part of its own stack that is in
/// use, unless that is nearly used up, are there, and no watchpoint of this thread lies on them: they are read as they
/// are. All else the kernel reads for us, which takes some microseconds and cannot fault. Signal-safe.
///
/// Where the program has the thread pointer point to nothing, there is no code to be read: what decodes it belongs to a
/// library, whose functions look there for the value that guards their frames.
class TargetView {
 public:
  TargetView(const ThreadState& self, const Registers& registers);
  /// Refers to this view.
  CodeReader reader();

 private:
  static bool read_code(void* view, std::uint64_t address, void* out, std::size_t bytes);
  static bool read_data(void* view, std::uint64_t address, void* out, std::size_t bytes);

  std::uint64_t ip_;
  bool can_decode_;
  // [stack_begin_, stack_end_): empty where the thread runs on another stack, or near its end
  std::uint64_t stack_begin_;
  std::uint64_t stack_end_;
};

}  // namespace crosstalk::in_target
