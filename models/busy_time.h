// SPDX-License-Identifier: Apache-2.0
// How long each unit of a machine was busy with a loop's work, and the class of the loop that follows.
//
// Source: "CPU performance tuning based on the type of application", RIKEN Center for Computational Science, version
// 1.1, 2021. Its equations 1.1 to 1.5 and sections 1.1 to 1.4 are named where they are used. The source's machine has
// no L3; here it is one more level, with the same equation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace crosstalk::models {

/// What has work to do for a loop. In the order in which data come nearer.
enum class Unit : std::uint8_t { memory, l3, l2, l1d, fpu };
inline constexpr std::size_t unit_count = 5;
inline constexpr std::array<Unit, unit_count> all_units = {Unit::memory, Unit::l3, Unit::l2, Unit::l1d, Unit::fpu};

/// "memory", "L3", "L2", "L1D", "floating-point units".
[[nodiscard]] const char* unit_in_words(Unit unit);

template <class Value>
class ByUnit {
 public:
  [[nodiscard]] Value& operator[](Unit unit) { return values_[static_cast<std::size_t>(unit)]; }
  [[nodiscard]] const Value& operator[](Unit unit) const { return values_[static_cast<std::size_t>(unit)]; }

 private:
  std::array<Value, unit_count> values_{};
};

/// How much a unit can do, in bytes a second; the floating-point units in operations a second. Of one thread: its part
/// of what threads share. Absent: not known.
struct Peak {
  std::optional<double> effective;    // the most that a program was measured to reach
  std::optional<double> theoretical;  // what the hardware is made for
  bool exists = true;                 // false: this machine has no such unit
  double spread = 0;                  // part of `effective` by which the best quarter of the tries to measure it differ
};
using Peaks = ByUnit<Peak>;

/// What a loop did in its time.
struct LoopWork {
  double elapsed_s = 0;
  ByUnit<std::optional<double>> amount;  // bytes that passed through a level, operations; absent: not known
};

/// How long a unit was busy, and of the elapsed time the part in which it was: by its effective and by its theoretical
/// peak. Absent where the work or the peak is not known.
struct BusyTime {
  std::optional<double> seconds;
  std::optional<double> of_effective, of_theoretical;
  /// At what the best quarter of the calibration's tries reached, all of them: on a machine that others use, too, a
  /// unit does not always have its peak to give. `of_effective` and this are the ends of what is known.
  std::optional<double> of_effective_most;
  bool exists = true;  // false: this machine has no such unit, and nothing is missing
};
using BusyTimes = ByUnit<BusyTime>;

/// Equations 1.1 (t_M), 1.2 (t_L2; t_L3 and t_L1 likewise) and 1.3 (t_C): work / effective peak. Of a loop without
/// elapsed time no part is known.
[[nodiscard]] BusyTimes busy_times(const LoopWork& work, const Peaks& peaks);

/// Equation 1.4: t_E, the greatest busy time, which no run can be quicker than. nullopt where none is known; a lower
/// bound where some are not.
struct Bound {
  Unit unit = Unit::memory;
  double seconds = 0;
};
[[nodiscard]] std::optional<Bound> bound_of(const BusyTimes& times);

/// Equation 1.5: C_p, the part of the floating-point peak that the greatest busy time leaves. nullopt where the
/// operations are not known.
[[nodiscard]] std::optional<double> peak_ratio(const BusyTimes& times);

/// Section 1.1: bytes moved to and from memory for each floating-point operation. Infinite for a loop without such
/// operations that moves some.
[[nodiscard]] std::optional<double> bytes_to_flops(const LoopWork& work);
/// Section 5.3.1: the same of the machine, by effective peaks. Loops with more are limited by memory, loops with less
/// by the floating-point units, as far as equation 1.4 goes with those two.
[[nodiscard]] std::optional<double> machine_balance(const Peaks& peaks);

/// Section 1.4. `in_l3` is for machines that have one.
enum class BusyClass : std::uint8_t { in_memory, in_l3, in_l2, in_l2_fpu, in_l1d, under_tuned };
inline constexpr std::size_t busy_classes = 6;

/// A unit that is busy for this part of the elapsed time is what the loop is tuned to ("the program execution time
/// ideally matches the busy time", section 1.4). The rest is what starts and ends of loops and a measured peak's own
/// error take.
inline constexpr double tuned_share = 0.8;

struct Classified {
  std::optional<BusyClass> which;  // nullopt: what is known does not decide
  std::string evidence;            // a sentence; where nothing is decided, what is missing
};
/// Sections 1.4.1 to 1.4.5: the class of the busiest unit if that is busy for `tuned_share` of the elapsed time, be it
/// by `of_effective_most` alone, which the evidence says then; else `under_tuned`, which takes all units to be known.
[[nodiscard]] Classified classify(const BusyTimes& times);

}  // namespace crosstalk::models
