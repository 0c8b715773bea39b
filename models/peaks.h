// SPDX-License-Identifier: Apache-2.0
// The peaks of a calibrated machine for one thread of a loop. Busy times are computed with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "models/busy_time.h"
#include "models/machine.h"

namespace crosstalk::models {

/// Calls `visit(width, precision, operation)` for each kind of floating-point instruction.
template <class Visit>
void for_each_kind(const Visit& visit) {
  for (const Width width : all_widths) {
    for (const Precision precision : all_precisions) {
      for (const Operation operation : all_operations) {
        visit(width, precision, operation);
      }
    }
  }
}

/// Floating-point operations by kind. Any unit of quantity: counts, or rates.
struct FlopMix {
  static constexpr std::size_t widths = all_widths.size(), precisions = all_precisions.size(),
                               operations = all_operations.size();
  std::array<double, widths * precisions * operations> of{};
  double other = 0;  // divisions, roots, x87, half precision: nothing is measured of them

  [[nodiscard]] static constexpr std::size_t index(Width width, Precision precision, Operation operation) {
    return (static_cast<std::size_t>(width) * precisions + static_cast<std::size_t>(precision)) * operations +
           static_cast<std::size_t>(operation);
  }
  void add(Width width, Precision precision, Operation operation, double flops) {
    of[index(width, precision, operation)] += flops;
  }
  void add(const FlopMix& more, double times);
  [[nodiscard]] double total() const;
  [[nodiscard]] double of_width(Width width) const;
  [[nodiscard]] double of_operation(Operation operation) const;
  [[nodiscard]] double of_precision(Precision precision) const;
};

/// A loop's demand on a machine. The measured figures most like it are chosen.
struct Demand {
  FlopMix flops = {};
  double store_share = 0;  // of its accesses to memory, those that store
  bool streaming = false;  // its stores go round the caches
  double threads = 1;      // executing it at the same time
};

/// The number of the machine's cores; 1 if it is unknown.
[[nodiscard]] std::uint32_t cores_of(const Machine& machine);

/// The part of one of `threads` threads in a figure for one core and for all. `shared`: threads share the capacity, and
/// one core may not be able to use it alone (memory, L3); otherwise every core has its own, slower the more of them
/// run. Only the two ends are measured; values in between are interpolated. If one end is absent and cores have their
/// own, the other replaces it. If one end is absent and the capacity is shared, only the measured end is known.
[[nodiscard]] Peak peak_of_thread(const Figure* one_core, const Figure* all_cores, double cores, double threads,
                                  bool shared);

/// Equation 1.3 takes one P_peak. For a mix, it is the operations over the time that they take one kind after another,
/// since the kinds share the same units. Parts are nullopt if a kind in the mix was not measured. Nothing is known of
/// an empty mix, or of one with a tenth or more `other`.
[[nodiscard]] Peak peak_of_mix(const Machine& machine, const FlopMix& mix, double threads);
/// The peak per thread of the machine's best width and operation.
[[nodiscard]] Peak peak_of_machine(const Machine& machine, Precision precision, double threads);

/// The peaks for one thread of a loop. A level's bandwidth is that of the traffic (load, triad, copy, store) nearest to
/// `store_share`, or the level's best one if that was not measured.
[[nodiscard]] Peaks peaks_of(const Machine& machine, const Demand& demand);

/// The reason why `peaks_of` has no effective peak of a unit: "its peak is not in the calibration: ..." with the reason
/// that the machine's file gives for the figure.
[[nodiscard]] std::string why_no_peak(const Machine& machine, Unit unit, const Demand& demand);

}  // namespace crosstalk::models
