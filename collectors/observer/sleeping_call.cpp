// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/sleeping_call.h"

#include <linux/futex.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace crosstalk::observer {
namespace {

// By number, as not all system headers have the later ones.
constexpr std::uint64_t futex_call = 202;
constexpr std::uint64_t futex_waitv_call = 449;
constexpr std::uint64_t futex_wait_call = 455;
constexpr std::uint64_t lock_pi_2 = 13;

/// Removes the number at the start of `text`, decimal or 0x and hexadecimal, with the space behind it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  constexpr std::string_view hexadecimal = "0x";
  const bool hex = text.starts_with(hexadecimal);
  text.remove_prefix(hex ? hexadecimal.size() : 0);
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number, hex ? 16 : 10);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  text.remove_prefix(text.starts_with(' ') ? 1 : 0);
  return number;
}

bool waits(std::uint64_t operation) {
  switch (operation & static_cast<std::uint64_t>(FUTEX_CMD_MASK)) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI:
    case lock_pi_2:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<SleepingCall> parse_sleeping_call(std::string_view text) {
  SleepingCall call;
  bool whole = true;
  const auto take = [&](std::uint64_t& field) {
    const auto number = take_number(text);
    whole = whole && number.has_value();
    field = number.value_or(0);
  };
  take(call.number);  // "running" and "-1" are no such number
  for (std::uint64_t& argument : call.arguments) {
    take(argument);
  }
  take(call.stack_pointer);
  take(call.instruction);
  return whole ? std::optional(call) : std::nullopt;
}

std::optional<std::uint64_t> awaited_futex(const SleepingCall& call) {
  if (call.number == futex_waitv_call) {
    return 0;
  }
  const bool one = call.number == futex_wait_call || (call.number == futex_call && waits(call.arguments[1]));
  return one ? std::optional(call.arguments[0]) : std::nullopt;
}

std::optional<ScheduleTimes> parse_schedule(std::string_view text) {
  const auto ran_ns = take_number(text);
  const auto ready_ns = take_number(text);
  const auto turns = take_number(text);
  // A kernel without these counters reports 0 turns for threads that have run.
  return ran_ns && ready_ns && turns.value_or(0) != 0 ? std::optional(ScheduleTimes{*ran_ns + *ready_ns, *turns})
                                                      : std::nullopt;
}

}  // namespace crosstalk::observer
