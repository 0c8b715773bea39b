// SPDX-License-Identifier: Apache-2.0
// Measures what this machine can do: `crosstalk calibrate`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "models/machine.h"

namespace crosstalk::collectors::calibration {

struct CalibrationRequest {
  bool quick = false;                         // a third of the tries, and briefer ones
  std::uint64_t limit_ns = 100'000'000'000U;  // figures that are not measured by then are absent
  std::uint64_t quick_limit_ns = 20'000'000'000U;
  std::string version;  // of crosstalk
  /// Figures of this machine, of a crosstalk that did not measure all: they are kept, and the others added.
  std::optional<models::Machine> known = {};
  std::function<void(const std::string& what)> progress = [](const std::string&) {};
};

/// Takes some seconds of all cores, and not much more than the limit on a busy machine. Figures that cannot be measured
/// are in the result, refused with the reason. Fails when the machine cannot be described.
[[nodiscard]] Result<models::Machine> calibrate_machine(const CalibrationRequest& request);

}  // namespace crosstalk::collectors::calibration
