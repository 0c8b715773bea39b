// SPDX-License-Identifier: Apache-2.0
// Builds the model that reports are drawn from out of a profile.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "attribution/code/code_choice.h"
#include "attribution/model/model.h"
#include "base/result.h"
#include "models/machine.h"
#include "profile/reader.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

struct AnalysisOptions {
  symbolizer::Options symbols;
  std::string estimator = "automatic";
  std::size_t max_rows = 100;                     // of lines, objects, functions each
  bool start_routines = false;                    // of threads; it takes a stack or more of each
  std::optional<CodeWanted> code = std::nullopt;  // functions to list the instructions of
  const models::Machine* machine = nullptr;       // the recorded machine, calibrated; null: it was not
  std::string uncalibrated;                       // why `machine` is null, a sentence with a remedy
};

/// Reads the whole profile. Fails only if the profile cannot be read, or if requested code cannot be shown.
[[nodiscard]] Result<Analysis> analyse(const profile::ProfileReader& profile, const AnalysisOptions& options);

}  // namespace crosstalk::attribution
