// SPDX-License-Identifier: Apache-2.0
#include "attribution/stages/processor_times.h"

#include "base/units.h"

namespace crosstalk::attribution {

void ProcessorTimes::add(const profile::SampleRow& sample) {
  if (sample.cpu == profile::unknown_cpu) {
    return;
  }
  if (sample.cpu >= sums_.size()) {
    sums_.resize(std::size_t{sample.cpu} + 1);  // 16 bits: a damaged number takes no more than 2 MiB
  }
  Sums& sums = sums_[sample.cpu];
  ++sums.samples;
  sums.in_kernel += (sample.flags & profile::sample_in_kernel) != 0 ? 1 : 0;
  if (sample.is_of_time()) {
    ++sums.of_clocks;
    sums.ns += static_cast<double>(sample.time_weight_ns());
  }
}

std::vector<ProcessorSummary> ProcessorTimes::summaries() const {
  std::vector<ProcessorSummary> result;
  for (std::size_t cpu = 0; cpu < sums_.size(); ++cpu) {
    const Sums& sums = sums_[cpu];
    if (sums.samples > 0) {
      result.push_back({static_cast<std::uint32_t>(cpu),
                        sums.of_clocks > 0 ? std::optional(sums.ns / ns_per_s) : std::nullopt, sums.samples,
                        static_cast<double>(sums.in_kernel) / static_cast<double>(sums.samples)});
    }
  }
  return result;
}

}  // namespace crosstalk::attribution
