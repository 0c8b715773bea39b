// SPDX-License-Identifier: Apache-2.0
// Busy times, waits, classes and remedies of a loop as JSON (docs/report-json.md).
#pragma once

#include <nlohmann/json.hpp>

#include "attribution/model/model.h"
#include "models/application_class.h"

namespace crosstalk::driver {

/// Returns the places where threads waited for each other, the member `waiting` of a report.
[[nodiscard]] nlohmann::ordered_json wait_places(const attribution::Analysis& analysis);

/// Adds `busy`, `waits`, `class`, `class_evidence`, `application_classes`, `advice`, `shape` and
/// `performance` to the loop's row.
void add_figures(nlohmann::ordered_json& row, const attribution::LoopRow& loop);

/// Returns seconds by cycle accounting class, null if nothing is known.
[[nodiscard]] nlohmann::ordered_json waits_of(const models::CycleAccount& account);

/// "high_bf_direct", ...
[[nodiscard]] const char* application_class_name(models::ApplicationClass which);

}  // namespace crosstalk::driver
