// SPDX-License-Identifier: Apache-2.0
// Detects that something took a thread's processor away while it measured.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace crosstalk::collectors::calibration {

/// The time that a piece of work took of its thread.
struct ThreadUse {
  std::uint64_t wall_ns = 0, cpu_ns = 0;
  std::uint64_t involuntary_switches = 0;
};
/// True if the thread was switched away from, or waited for a processor for more than a hundredth of the time.
[[nodiscard]] bool was_disturbed(const ThreadUse& use);

/// Watches the calling thread: `use()` is of the time between `begin()` and `end()`.
class ThreadWatch {
 public:
  void begin();  // the last thing is to read the clock
  void end();    // the first thing is to read the clock
  [[nodiscard]] ThreadUse use() const;
  [[nodiscard]] std::uint64_t begin_ns() const { return begin_.wall_ns; }
  [[nodiscard]] std::uint64_t end_ns() const { return end_.wall_ns; }

 private:
  struct Moment {
    std::uint64_t wall_ns = 0, cpu_ns = 0, switches = 0;
  };
  Moment begin_, end_;
};

/// Returns the ticks that a hypervisor gave to others while `cpus` wanted to run, by the text of /proc/stat; 0: not
/// known.
[[nodiscard]] std::uint64_t stolen_ticks(std::string_view stat, const std::vector<std::uint32_t>& cpus);

/// How much was stolen from some processors. On bare metal nothing is read.
class StealTime {
 public:
  explicit StealTime(std::vector<std::uint32_t> cpus);
  /// True if any time was stolen since the last call. Ticks are 10 ms, so a theft that shows now may be some time ago.
  [[nodiscard]] bool any_since_last();

 private:
  std::vector<std::uint32_t> cpus_;
  bool possible_;
  std::uint64_t last_ = 0;
};

}  // namespace crosstalk::collectors::calibration
