// SPDX-License-Identifier: Apache-2.0
// Builds an `Analysis`, the model of every report, from a profile.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "attribution/code/code_choice.h"
#include "attribution/model/model.h"
#include "attribution/stacks/stack_inputs.h"
#include "base/result.h"
#include "models/machine.h"
#include "profile/reader.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

struct AnalysisOptions {
  symbolizer::Options symbols;
  std::string estimator = "automatic";
  std::size_t max_rows = 100;                         // of lines, objects, functions each
  bool start_routines = false;                        // of threads: names them; unwinds a stack or more of each
  std::optional<CodeWanted> code = std::nullopt;      // functions to list the instructions of
  std::optional<StacksWanted> stacks = std::nullopt;  // weighted call stacks; absent: none
  const models::Machine* machine = nullptr;           // calibration of the machine that recorded; null: none
  std::string uncalibrated;                           // why `machine` is null, a sentence with a remedy
};

/// Reads the whole profile. Fails only if the profile cannot be read, if the estimator is unknown, or if requested
/// code cannot be shown.
[[nodiscard]] Result<Analysis> analyse(const profile::ProfileReader& profile, const AnalysisOptions& options);

}  // namespace crosstalk::attribution
