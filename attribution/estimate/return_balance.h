// SPDX-License-Identifier: Apache-2.0
// The part of an instruction's counted accesses that may each have a communication of their own.
//
// A counting sample is valued by what follows its access (cost_attribution.h). Its watch begins later than that: if a
// thread's visits to a line are brief, nearly always between two of them. Then a visit that loads and stores counts
// with the samples of its load and with those of its store. Where watches begin with the sampled accesses, threads come
// back to an instruction as often as it is sampled, whatever they do. Where they begin late, threads come back more
// often than that to the instructions that begin visits, and less often to those that follow them. So the samples of an
// instruction count in the proportion of the returns to it, and at most once. The visits of a loop of one instruction
// are balanced in either case: their number stays too high.
#pragma once

#include <cstdint>
#include <map>

#include "attribution/estimate/evidence.h"

namespace crosstalk::attribution {

/// Call add() for all watches, then finish(), then part().
class ReturnBalance {
 public:
  /// Counts the sampled thread's next access, if the watch saw it. `expansion`: of the evidence's stratum.
  void add(const Evidence& evidence, double expansion);
  void finish();
  /// The part of the samples of this evidence's instruction that count, 0..1: 1 unless there are fewer returns to it
  /// than samples beyond chance (three standard deviations of their difference).
  [[nodiscard]] double part(const Evidence& evidence) const;

 private:
  struct Weight {
    double sum = 0, squares = 0;
  };
  std::map<std::uint64_t, std::map<std::uint64_t, Weight>> returns_;  // by sampled instruction, by that returned to
  std::map<std::uint64_t, double> parts_;                             // by sampled instruction; 1 if not here
};

}  // namespace crosstalk::attribution
