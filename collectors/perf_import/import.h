// SPDX-License-Identifier: Apache-2.0
// Makes a profile from a perf.data file.
//
//   Reader (perf_data/) -> tasks and their code (tasks.h, mappings.h), samples (sample_rows.h) -> ProfileWriter
//
// The profile keeps all facts of the recording that it has rows for. A recording of perf watches no lines of memory, so
// the profile has no watches and no traps, and cannot show which threads communicate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace crosstalk::perf_import {

struct ImportOutcome {
  std::uint64_t samples = 0;       // that are in the profile
  std::uint64_t left_out = 0;      // of no thread, or of an event that the file does not describe
  std::uint64_t threads = 0;       // that the profile has
  std::vector<std::string> notes;  // notes for the user, as in the profile's messages
};

/// Reads `input` and writes `output`; an existing `output` becomes output.old. `version` is crosstalk's. After an error
/// there is no `output`, but for one that was there before.
[[nodiscard]] Result<ImportOutcome> import_perf_data(const std::string& input, const std::string& output,
                                                     const std::string& version);

}  // namespace crosstalk::perf_import
