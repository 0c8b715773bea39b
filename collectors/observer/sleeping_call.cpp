// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/sleeping_call.h"

#include <linux/futex.h>

#include "base/proc_fields.h"

namespace crosstalk::observer {
namespace {

// By number, as not all system headers have the later ones.
constexpr std::uint64_t futex_call = 202;
constexpr std::uint64_t futex_waitv_call = 449;
constexpr std::uint64_t futex_wait_call = 455;
constexpr std::uint64_t lock_pi_2 = 13;

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
    const auto number = crosstalk::take_number(text);
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
  const auto counts = schedule_counts(text);
  return counts ? std::optional(ScheduleTimes{counts->ran_ns + counts->ready_ns, counts->turns}) : std::nullopt;
}

}  // namespace crosstalk::observer
