// SPDX-License-Identifier: Apache-2.0
#include "daemon/scheduler_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace crosstalk::daemon {
namespace {

/// The number at the start of `text`, which is taken off with the space behind it.
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
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/schedstat";
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 96> bytes{};
  const ssize_t size = file.valid() ? ::read(file.get(), bytes.data(), bytes.size()) : -1;
  if (size <= 0) {
    return std::nullopt;
  }
  std::string_view text(bytes.data(), static_cast<std::size_t>(size));
  const auto ran = take_number(text);
  const auto waited = take_number(text);
  const auto turns = take_number(text);
  // A kernel that does not count says 0 turns of threads that have run.
  return ran && waited && turns.value_or(0) != 0 ? std::optional(SchedulerTimes{*ran, *waited}) : std::nullopt;
}

}  // namespace crosstalk::daemon
