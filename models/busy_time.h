// SPDX-License-Identifier: Apache-2.0
// The time that each unit of a machine was busy with a loop's work, and the loop's class by it.
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

/// Units that work for a loop, in the order in which data come nearer to the core.
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

/// Capacity of a unit for one thread, including its part of shared units: bytes a second, for the floating-point units
/// operations a second. Absent: not known.
struct Peak {
  std::optional<double> effective;    // the most that a program was measured to reach
  std::optional<double> theoretical;  // the hardware's design limit
  bool exists = true;                 // false: this machine has no such unit
  double spread = 0;                  // part of `effective` by which the best quarter of the tries to measure it differ
};
using Peaks = ByUnit<Peak>;

/// The work of a loop and its elapsed time.
struct LoopWork {
  double elapsed_s = 0;
  ByUnit<std::optional<double>> amount;  // bytes that passed through a level, operations; absent: not known
};

/// The time that a unit was busy, and that time as a part of the elapsed time, by its effective and by its theoretical
/// peak. Absent if the work or the peak is not known.
struct BusyTime {
  std::optional<double> seconds;
  std::optional<double> of_effective, of_theoretical;
  /// The same part by the lowest rate in the best quarter of the calibration's tries: on a machine with other users a
  /// unit does not always reach its peak. The true part lies between `of_effective` and this.
  std::optional<double> of_effective_most = {};
  bool exists = true;  // false: this machine has no such unit, and nothing is missing
};
using BusyTimes = ByUnit<BusyTime>;

/// Equations 1.1 (t_M), 1.2 (t_L2; t_L3 and t_L1 likewise) and 1.3 (t_C): work / effective peak. A loop without elapsed
/// time has no known parts.
[[nodiscard]] BusyTimes busy_times(const LoopWork& work, const Peaks& peaks);

/// Equation 1.4: t_E, the greatest busy time, the least time that a run can take. nullopt if no busy time is known; a
/// lower bound if some are not.
struct Bound {
  Unit unit = Unit::memory;
  double seconds = 0;
};
[[nodiscard]] std::optional<Bound> bound_of(const BusyTimes& times);

/// Equation 1.5: C_p, the part of the floating-point peak that the greatest busy time leaves. nullopt if the operations
/// are not known.
[[nodiscard]] std::optional<double> peak_ratio(const BusyTimes& times);

/// Section 1.1: bytes moved to and from memory for each floating-point operation. Infinite for a loop that moves bytes
/// without such operations.
[[nodiscard]] std::optional<double> bytes_to_flops(const LoopWork& work);
/// Section 5.3.1: the same ratio of the machine, by effective peaks. Going by those two units in equation 1.4, memory
/// limits loops with a higher ratio, and the floating-point units limit loops with a lower one.
[[nodiscard]] std::optional<double> machine_balance(const Peaks& peaks);

/// Section 1.4. `in_l3` is for machines with a third level.
enum class BusyClass : std::uint8_t { in_memory, in_l3, in_l2, in_l2_fpu, in_l1d, under_tuned };
inline constexpr std::size_t busy_classes = 6;

/// A loop is tuned to a unit that is busy for at least this part of the elapsed time ("the program execution time
/// ideally matches the busy time", section 1.4). The rest allows for starts and ends of loops and for errors of the
/// measured peak.
inline constexpr double tuned_share = 0.8;

struct Classified {
  std::optional<BusyClass> which;  // nullopt: what is known does not decide
  std::string evidence;            // a sentence; where nothing is decided, what is missing
};
/// Sections 1.4.1 to 1.4.5: the class of the busiest unit if that is busy for `tuned_share` of the elapsed time, by
/// `of_effective` or else by `of_effective_most`, which the evidence then says. Otherwise `under_tuned`, provided that
/// all units are known.
[[nodiscard]] Classified classify(const BusyTimes& times);

}  // namespace crosstalk::models
