// SPDX-License-Identifier: Apache-2.0
// What of a calibrated machine a loop's thread can have at most: the peaks that busy times are computed with.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "models/busy_time.h"
#include "models/machine.h"

namespace crosstalk::models {

/// Floating-point operations by what does them. Any unit of quantity: counts, or rates.
struct FlopMix {
  static constexpr std::size_t widths = 4, precisions = 2, operations = 3;
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

/// What a loop asks of a machine: by this, what was measured is chosen that is most like it.
struct Demand {
  FlopMix flops = {};
  double store_share = 0;  // of its accesses to memory, those that store
  bool streaming = false;  // its stores go round the caches
  double threads = 1;      // that execute it at the same time
};

/// What one of so many threads can have of a figure for one core and for all. `shared`: what threads share, and one
/// core may not be able to take up alone (memory, L3); else every core has its own, slower the more of them run. In
/// between it is interpolated, since only the two ends are measured. Where one end is absent, the other stands for it
/// as far as each core has its own; of what is shared nothing is known then but at the end that was measured.
[[nodiscard]] Peak peak_of_thread(const Figure* one_core, const Figure* all_cores, double cores, double threads,
                                  bool shared);

/// Equation 1.3 takes one P_peak. Of a mix it is the mix's own: the operations over the time that they take one kind
/// after another, since the kinds share the same units. nullopt parts where a kind in it was not measured. Of an empty
/// mix, and of one that is `other` to a tenth and more, nothing is known.
[[nodiscard]] Peak peak_of_mix(const Machine& machine, const FlopMix& mix, double threads);
/// The machine's own: of the best width and operation, per thread.
[[nodiscard]] Peak peak_of_machine(const Machine& machine, Precision precision, double threads);

/// Of one thread of a loop. Levels' bandwidths are those of the loop (load, triad, copy, store) that is nearest to
/// `store_share`; where that was not measured, the level's best one.
[[nodiscard]] Peaks peaks_of(const Machine& machine, const Demand& demand);

/// Why `peaks_of` has no effective peak of a unit: "its peak is not in the calibration: ..." with the reason that the
/// machine's file gives for the figure.
[[nodiscard]] std::string why_no_peak(const Machine& machine, Unit unit, const Demand& demand);

}  // namespace crosstalk::models
