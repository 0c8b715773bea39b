// SPDX-License-Identifier: Apache-2.0
// From a sample as perf has it to a row of a profile.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collectors/perf_data/records.h"
#include "collectors/perf_import/event_units.h"
#include "profile/model.h"

namespace crosstalk::perf_import {

struct RowSettings {
  std::uint32_t cycle_ps = 0;  // how long a cycle takes
  bool x86_64 = false;         // registers are those of such a machine
};

/// All but the thread.
[[nodiscard]] profile::SampleRow row_of(const perf_data::Record& record, const perf_data::Sample& sample,
                                        const EventUnit& unit, const RowSettings& settings);

/// Sets `calls` to the calls that user code was in, innermost first, beginning with its own place; empty: the sample
/// has none. For a sample in the kernel, the first is the system call.
void read_user_calls(const perf_data::Record& record, const perf_data::Sample& sample,
                     std::vector<std::uint64_t>& calls);

/// Returns the place of user code: for a sample in the kernel, its system call; 0 if the sample does not tell.
[[nodiscard]] std::uint64_t user_ip(const perf_data::Record& record, const perf_data::Sample& sample,
                                    const RowSettings& settings);

}  // namespace crosstalk::perf_import
