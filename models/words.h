// SPDX-License-Identifier: Apache-2.0
// Formats figures and lists for the sentences of models.
#pragma once

#include <span>
#include <string>

namespace crosstalk::models {

/// "51 %" of 0.512; "0.4 %" below one percent.
[[nodiscard]] std::string percent(double share);
/// "a", "a and b", "a, b and c".
[[nodiscard]] std::string enumerated(std::span<const std::string> names);
/// Three significant digits: "0.0312", "12.5", "340".
[[nodiscard]] std::string figure(double value);

}  // namespace crosstalk::models
