// SPDX-License-Identifier: Apache-2.0
// Measures what this machine can do: `crosstalk calibrate`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "models/machine.h"

namespace crosstalk::collectors::calibration {

struct CalibrationRequest {
  bool quick = false;                         // a third of the tries, and briefer ones
  std::uint64_t limit_ns = 110'000'000'000U;  // what is not measured by then is refused
  std::string version;                        // of crosstalk
  std::function<void(const std::string& what)> progress = [](const std::string&) {};
};

/// Some seconds of all cores. Figures that are not to be had are in the result, refused with the reason. Fails when the
/// machine can not be described, or when what was measured makes no sense as a whole (models::validate).
[[nodiscard]] Result<models::Machine> calibrate_machine(const CalibrationRequest& request);

}  // namespace crosstalk::collectors::calibration
