// SPDX-License-Identifier: Apache-2.0
// The system call that a thread sleeps in, as the kernel shows it in /proc/PID/task/TID/syscall: from the registers
// that lie on the thread's kernel stack, so that nothing stops it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace crosstalk::observer {

struct SleepingCall {
  static constexpr std::size_t most_arguments = 6;
  std::uint64_t number = 0;
  std::array<std::uint64_t, most_arguments> arguments{};
  std::uint64_t stack_pointer = 0;
  std::uint64_t instruction = 0;  // after the call
  friend bool operator==(const SleepingCall&, const SleepingCall&) = default;
};

/// Parses the file's text. Nothing: the thread runs or could, or it sleeps in no call (on a page fault, say).
[[nodiscard]] std::optional<SleepingCall> parse_sleeping_call(std::string_view text);

/// Returns the address of the futex that the call waits on; 0: of several. Nothing: it waits on none.
[[nodiscard]] std::optional<std::uint64_t> awaited_futex(const SleepingCall& call);

/// A thread's times so far, by the scheduler.
struct ScheduleTimes {
  std::uint64_t awake_ns = 0;  // on a processor, or ready for one; a tick behind
  std::uint64_t turns = 0;     // on a processor
};
/// Parses the text of a thread's file schedstat. Nothing: the kernel does not count.
[[nodiscard]] std::optional<ScheduleTimes> parse_schedule(std::string_view text);

}  // namespace crosstalk::observer
