// SPDX-License-Identifier: Apache-2.0
// Counts the samples that memory events have taken, and the causes of missing ones, for the report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collectors/observer/perf_types.h"
#include "profile/model.h"

namespace crosstalk::observer {

struct MeasuredSamples {
  std::uint64_t accesses = 0;   // were taken
  std::uint64_t in_kernel = 0;  // and these were dropped
  std::uint64_t without_access = 0, half_updates = 0;
  std::uint64_t of_others = 0;        // of threads that are not watched; events of processors have such
  std::uint64_t lost = 0;             // of events of processors: their threads are not known
  std::uint64_t throttled = 0;        // times that the kernel has stopped sampling
  double counting_part = 1;           // the least part of the time that an event had a counter
  std::uint64_t without_counter = 0;  // threads or processors of which an event never had a counter
  bool watchdog = false;              // the kernel's NMI watchdog holds a counter of those that events have
  std::uint64_t clock_alone = 0;      // threads whose accesses could not be sampled
  std::string refusal;                // why, of the last of them; also why no event of processors could be opened

  void count(Measured measured);
  /// Returns no counts, but what holds for samples to come.
  [[nodiscard]] MeasuredSamples of_what_lasts() const;
};

/// Returns warnings for the profile; none if there is nothing to say.
[[nodiscard]] std::vector<profile::MessageRow> remarks_on(const MeasuredSamples& samples);

}  // namespace crosstalk::observer
