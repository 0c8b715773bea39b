// SPDX-License-Identifier: Apache-2.0
// Values in JSON form: an unknown value is null.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>

#include "attribution/model/model.h"

namespace crosstalk::driver {

using Json = nlohmann::ordered_json;

/// JSON has no infinities: infinities and NaN become null.
inline Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

template <class Value>
Json known(const std::optional<Value>& value) {
  if constexpr (std::is_same_v<Value, double>) {
    return value ? number(*value) : Json(nullptr);
  } else {
    return value ? Json(*value) : Json(nullptr);
  }
}

/// Returns seconds of CPU time; null if samples do not stand for time.
inline Json seconds(const attribution::Analysis& analysis, double value) {
  return analysis.shares_of.empty() ? number(value) : Json(nullptr);
}

inline Json interval(const std::optional<attribution::Interval>& value) {
  return value ? Json::array({number(value->low), number(value->high)}) : Json(nullptr);
}

inline Json known_text(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
inline Json known_line(std::uint32_t line) { return line == 0 ? Json(nullptr) : Json(line); }

/// Returns the verdict of the watchpoint self-test; null if it did not run.
inline Json watch_trial(const profile::WatchTrial& trial) {
  const std::string verdict = profile::verdict_name(trial.verdict);
  if (verdict.empty()) {
    return nullptr;
  }
  return {{"registers", trial.registers},
          {"self_test", verdict},
          {"silent", Json(profile::names_of_accesses(trial.silent))},
          {"why", known_text(trial.why)},
          {"remedy", known_text(trial.remedy)}};
}

}  // namespace crosstalk::driver
