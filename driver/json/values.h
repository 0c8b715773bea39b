// SPDX-License-Identifier: Apache-2.0
// Values in JSON form: an unknown value is null.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "attribution/model/model.h"
#include "models/cycle_accounting.h"

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

/// Parts of 1 by the level of memory.
inline Json by_level(const std::optional<models::LevelShares>& parts) {
  return parts ? Json{{"l1d", (*parts)[0]}, {"l2", (*parts)[1]}, {"l3", (*parts)[2]}, {"memory", (*parts)[3]}}
               : Json(nullptr);
}

inline Json known_text(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
inline Json known_line(std::uint32_t line) { return line == 0 ? Json(nullptr) : Json(line); }

inline Json frames(const std::vector<symbolizer::Frame>& path) {
  Json list = Json::array();
  for (const symbolizer::Frame& frame : path) {
    list.push_back({{"function", known_text(frame.function)},
                    {"file", known_text(frame.source.file)},
                    {"line", known_line(frame.source.line)},
                    {"inlined", frame.inlined}});
  }
  return list;
}
inline Json call_paths(const std::vector<attribution::CallPath>& all) {
  Json list = Json::array();
  for (const attribution::CallPath& path : all) {
    list.push_back({{"weight", number(path.weight)}, {"frames", frames(path.frames)}});
  }
  return list;
}

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
