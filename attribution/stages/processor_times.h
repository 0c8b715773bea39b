// SPDX-License-Identifier: Apache-2.0
// Sums samples by the processor on which they were taken.
#pragma once

#include <cstdint>
#include <vector>

#include "attribution/model/model.h"
#include "profile/model.h"

namespace crosstalk::attribution {

class ProcessorTimes {
 public:
  void add(const profile::SampleRow& sample);
  [[nodiscard]] std::vector<ProcessorSummary> summaries() const;  // those with samples, sorted by processor

 private:
  struct Sums {
    std::uint64_t samples = 0, of_clocks = 0, in_kernel = 0;
    double ns = 0;
  };
  std::vector<Sums> sums_;  // by number of the processor
};

}  // namespace crosstalk::attribution
