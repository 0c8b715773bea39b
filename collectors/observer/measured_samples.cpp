// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/measured_samples.h"

#include <algorithm>
#include <cmath>

#include "collectors/pmu/event_self_test.h"

namespace crosstalk::observer {

void MeasuredSamples::count(Measured measured) {
  switch (measured) {
    case Measured::access:
      ++accesses;
      break;
    case Measured::in_kernel:
      ++in_kernel;
      break;
    case Measured::no_access:
      ++without_access;
      break;
    case Measured::half_an_update:
      ++half_updates;
      break;
  }
}

MeasuredSamples MeasuredSamples::of_what_lasts() const {
  MeasuredSamples lasts;
  lasts.watchdog = watchdog;
  lasts.refusal = refusal;
  return lasts;
}

std::vector<profile::MessageRow> remarks_on(const MeasuredSamples& samples) {
  std::vector<profile::MessageRow> remarks;
  if (const std::uint64_t dropped = samples.in_kernel + samples.without_access; dropped != 0) {
    remarks.push_back({"samples_without_access",
                       "of " + std::to_string(samples.accesses + samples.half_updates + dropped) +
                           " samples of memory events " + std::to_string(samples.without_access) +
                           " were of instructions that access no memory, or whose address the processor could not "
                           "tell, and " +
                           std::to_string(samples.in_kernel) + " were in the kernel; they are left out",
                       dropped});
  }
  if (samples.throttled != 0) {
    remarks.push_back({"sampling_throttled",
                       "the kernel has stopped the sampling of memory accesses " + std::to_string(samples.throttled) +
                           " times, since it took more time than kernel.perf_cpu_time_max_percent, or came more often "
                           "than kernel.perf_event_max_sample_rate; a longer --period helps",
                       samples.throttled});
  }
  if (samples.without_counter != 0) {
    remarks.push_back({"events_never_counted",
                       "a memory event of " + std::to_string(samples.without_counter) +
                           " threads never had a counter of the processor, so that nothing was sampled by it; " +
                           collectors::holders_of_counters(samples.watchdog),
                       samples.without_counter});
  }
  constexpr double noticeable = 0.98;
  if (samples.counting_part < noticeable) {
    remarks.push_back({"events_multiplexed",
                       "memory events had a counter for as little as " +
                           std::to_string(std::lround(samples.counting_part * 100)) +
                           " % of the time; what they sampled stands for the rest; " +
                           collectors::holders_of_counters(samples.watchdog),
                       1});
  }
  if (samples.lost != 0) {
    remarks.push_back({"measured_samples_lost",
                       std::to_string(samples.lost) + " samples of memory accesses were lost: they came faster than "
                                                      "they were read",
                       samples.lost});
  }
  if (!samples.refusal.empty()) {
    remarks.push_back({"accesses_not_sampled",
                       (samples.clock_alone != 0 ? std::to_string(samples.clock_alone) + " threads were" : "all was") +
                           std::string(" sampled by the clock alone: ") + samples.refusal,
                       std::max<std::uint64_t>(samples.clock_alone, 1)});
  }
  return remarks;
}

}  // namespace crosstalk::observer
