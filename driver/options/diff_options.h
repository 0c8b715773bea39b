// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk diff`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attribution/comparison/compare.h"
#include "attribution/comparison/condition.h"
#include "driver/options/command_line.h"
#include "driver/options/view_options.h"

namespace crosstalk::driver {

/// A request. `least_cost` drops the rows that cost less in both profiles.
struct DiffRequest {
  std::string before, after;  // names of profiles
  std::vector<attribution::comparison::Condition> conditions;
  attribution::MinCost least_cost;
  attribution::comparison::Options comparison;
  std::string sysroot;
  Format format = Format::text;
  ColorChoice color = ColorChoice::automatic;
  bool pager = true;
  int verbosity = 0;
};

[[nodiscard]] Result<Parsed<DiffRequest>> parse_diff(const Arguments& arguments);

}  // namespace crosstalk::driver
