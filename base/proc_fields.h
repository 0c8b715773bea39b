// SPDX-License-Identifier: Apache-2.0
// Reads files in /proc: values by name from lines "name: value" (cpuinfo, status, meminfo), fields of stat,
// numbers of schedstat.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/number.h"
#include "base/unique_fd.h"

namespace crosstalk {

/// The whole text of a file in /proc; "" if it cannot be read.
[[nodiscard]] inline std::string file_text(const std::string& path) {
  // A stream would take twice as many system calls, and whoever samples reads a hundred files a second.
  std::string text;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> part;
  for (ssize_t length = file.get() >= 0 ? 1 : 0; length > 0;) {
    length = ::read(file.get(), part.data(), part.size());
    text.append(part.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  }
  return text;
}

/// The value of the first line of `text` with exactly this name, trimmed; "" if nothing follows the colon, nullopt if
/// there is no such line.
[[nodiscard]] inline std::optional<std::string_view> proc_field(std::string_view text, std::string_view name) {
  constexpr std::string_view blank = " \t\r";
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    const std::size_t colon = line.starts_with(name) ? line.find_first_not_of(blank, name.size()) : line.npos;
    if (colon != line.npos && line[colon] == ':') {
      const std::size_t first = line.find_first_not_of(blank, colon + 1);
      return first == line.npos ? std::string_view() : line.substr(first, line.find_last_not_of(blank) - first + 1);
    }
    text.remove_prefix(newline == text.npos ? text.size() : newline + 1);
  }
  return std::nullopt;
}

/// Field `number`, from 3 on, of the text of /proc/PID/stat, counted as in proc(5); empty: there is none. The name,
/// field 2, may hold anything, brackets too.
[[nodiscard]] inline std::string_view stat_field(std::string_view stat, int number) {
  constexpr int first = 3;
  const std::size_t name_end = stat.rfind(')');
  std::size_t begin = name_end == stat.npos ? stat.npos : stat.find(' ', name_end);
  for (int field = first; field < number && begin != stat.npos; ++field) {
    begin = stat.find(' ', begin + 1);
  }
  return begin == stat.npos ? std::string_view() : stat.substr(begin + 1, stat.find(' ', begin + 1) - begin - 1);
}

/// Removes the number at the start of `text`, decimal or 0x and hexadecimal, with the space behind it.
[[nodiscard]] inline std::optional<std::uint64_t> take_number(std::string_view& text) {
  constexpr std::string_view hexadecimal = "0x";
  const bool hex = text.starts_with(hexadecimal);
  text.remove_prefix(hex ? hexadecimal.size() : 0);
  const auto number = take_leading<std::uint64_t>(text, hex ? 16 : 10);
  text.remove_prefix(number && text.starts_with(' ') ? 1 : 0);
  return number;
}

/// A thread's times so far by the scheduler, as in its file schedstat; up to a tick behind.
struct ScheduleCounts {
  std::uint64_t ran_ns = 0;
  std::uint64_t ready_ns = 0;  // it waited for a processor
  std::uint64_t turns = 0;     // on a processor
};

/// Parses the text of schedstat; nullopt: it is malformed, or the kernel does not count.
[[nodiscard]] inline std::optional<ScheduleCounts> schedule_counts(std::string_view schedstat) {
  const auto ran_ns = take_number(schedstat);
  const auto ready_ns = take_number(schedstat);
  const auto turns = take_number(schedstat);
  // A kernel without these counters reports 0 turns for threads that have run.
  return ran_ns && ready_ns && turns.value_or(0) != 0 ? std::optional(ScheduleCounts{*ran_ns, *ready_ns, *turns})
                                                      : std::nullopt;
}

/// proc_field() of a file, which is read only up to that line; nullopt also if it cannot be read.
[[nodiscard]] inline std::optional<std::string> proc_file_field(const char* path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (const auto value = proc_field(line, name)) {
      return std::string(*value);
    }
  }
  return std::nullopt;
}

/// A field of the first processor in /proc/cpuinfo: "model name", "vendor_id", ...; "" if it is missing.
[[nodiscard]] inline std::string processor_field(std::string_view name) {
  return proc_file_field("/proc/cpuinfo", name).value_or("");
}

}  // namespace crosstalk
