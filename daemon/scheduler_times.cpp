// SPDX-License-Identifier: Apache-2.0
#include "daemon/scheduler_times.h"

#include <charconv>
#include <string_view>

#include "daemon/task_file.h"

namespace crosstalk::daemon {
namespace {

/// Removes the number at the start of `text`, with the space behind it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  text.remove_prefix(text.starts_with(' ') ? 1 : 0);
  return number;
}

}  // namespace

std::optional<SchedulerTimes> scheduler_times(pid_t pid, pid_t tid) {
  const auto file = task_file(pid, tid, "schedstat");
  if (!file) {
    return std::nullopt;
  }
  std::string_view text(*file);
  const auto ran = take_number(text);
  const auto waited = take_number(text);
  const auto turns = take_number(text);
  // A kernel without these counters reports 0 turns for threads that have run.
  return ran && waited && turns.value_or(0) != 0 ? std::optional(SchedulerTimes{*ran, *waited}) : std::nullopt;
}

}  // namespace crosstalk::daemon
