// SPDX-License-Identifier: Apache-2.0
// Sends messages to the user, through the calling thread's ring. Signal-safe.
#pragma once

#include <atomic>

namespace crosstalk::in_target {

/// `code` is stable and in snake_case, `text` one line.
void emit_message(const char* code, const char* text);

/// For a message that a process gives once. Zero-initialised static storage.
class Once {
 public:
  bool first() { return !said_.exchange(true, std::memory_order_relaxed); }

 private:
  std::atomic<bool> said_{false};
};

}  // namespace crosstalk::in_target
