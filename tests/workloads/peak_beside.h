// SPDX-License-Identifier: Apache-2.0
// Measures the machine's peak while a loop runs: the calibration's own kernel of the unit that limits the loop, in
// turns with it. A calibration some minutes earlier may differ on a shared machine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectors/calibration/traffic_kernels.h"
#include "counted_loops.h"
#include "models/machine.h"

namespace workload {

/// The unit that limits a loop by its construction.
struct Limit {
  const char* unit = nullptr;  // "fpu", "l1d", "l2", "l3", "memory"; null: nothing that has a peak
  crosstalk::models::Traffic traffic = crosstalk::models::Traffic::triad;  // of a level, as the loop's is
};

class PeakBeside {
 public:
  /// `vector_bytes`: width of the loop's multiply-adds; levels have the peak of their best vectors. Ends the process if
  /// the machine cannot be described.
  PeakBeside(const Limit& limit, std::size_t vector_bytes);
  ~PeakBeside();
  PeakBeside(const PeakBeside&) = delete;
  PeakBeside& operator=(const PeakBeside&) = delete;

  /// Runs the kernel for about so much CPU time.
  void visit(double seconds);
  /// `"peak":{"unit":...,"traffic":...,"width":...,"per_s":...}`; flops or moved bytes a second of CPU time, on
  /// average.
  [[nodiscard]] std::string truth() const;

 private:
  class Kernel;
  std::vector<std::unique_ptr<Kernel>> kernels_;  // of the widths that are tried
  std::string begin_;
};

/// As run_counted(), with the peak in turns with the loop if there is one.
template <class Data>
std::string run_with_peak(Data& data, const std::vector<CountedLoop<Data>>& loops, double seconds, double visit_s,
                          const std::unique_ptr<PeakBeside>& peak) {
  if (!peak) {
    return run_counted(data, loops, seconds, visit_s);
  }
  const std::string counted = run_counted(data, loops, seconds, visit_s, [&] { peak->visit(visit_s); });
  return counted + "," + peak->truth();
}

}  // namespace workload
