// SPDX-License-Identifier: Apache-2.0
// Small facts read from /proc and /sys, and the pure functions that make sense of their text.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::collectors {

struct KernelVersion {
  unsigned major = 0, minor = 0;
  // clang-tidy 14 takes the generated comparison with 0 for a null pointer.
  auto operator<=>(const KernelVersion&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// The first kernel with synchronous watchpoint traps (perf's `sigtrap`) and `remove_on_exec`.
inline constexpr KernelVersion oldest_kernel{5, 13};

/// "6.1.0-13-amd64" -> {6, 1}. None for text that does not start with two numbers.
[[nodiscard]] std::optional<KernelVersion> parse_kernel_release(std::string_view release);
/// Release of the running kernel, as `uname -r` prints it.
[[nodiscard]] std::string kernel_release();

/// The whole of a small file (64 KiB at most), none when it cannot be read. Trailing white space removed.
[[nodiscard]] std::optional<std::string> read_small_file(const std::string& path);
/// /proc/sys/kernel/perf_event_paranoid; -1: not there (a kernel without perf, or a hidden /proc).
[[nodiscard]] int perf_event_paranoid();

enum class SystemCallFilter { none, filtered, unknown };
/// Tells if a seccomp filter is on this process, but not what the filter refuses.
[[nodiscard]] SystemCallFilter system_call_filter();

struct CpuFacts {
  std::string vendor;  // "GenuineIntel", "AuthenticAMD", ...; empty: unknown
  std::string model;   // as /proc/cpuinfo has it
  bool virtual_machine = false;
  bool has_ibs = false;  // AMD's instruction-based sampling
};
[[nodiscard]] CpuFacts parse_cpuinfo(std::string_view cpuinfo);

}  // namespace crosstalk::collectors
