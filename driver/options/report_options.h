// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk report`.
#pragma once

#include <optional>
#include <string>

#include "attribution/filter.h"
#include "attribution/groups.h"
#include "driver/options/command_line.h"
#include "driver/options/view_options.h"

namespace crosstalk::driver {

enum class View { summary, matrix, lines, objects, loops, busy, memory, threads, regions, source, assembly };

struct ReportRequest {
  std::string input = "crosstalk.db";
  bool input_named = false;
  std::string place;                       // of the code views; empty: the one with the most time or cost
  std::optional<View> view;                // absent: the summary as text or CSV, everything as JSON
  std::optional<attribution::GroupBy> by;  // absent: each thread separately
  Format format = Format::text;
  attribution::Filter filter;
  std::string estimator = "automatic";
  std::string sysroot;
  bool pager = true;
  ColorChoice color = ColorChoice::automatic;
  int verbosity = 0;
};

[[nodiscard]] Result<Parsed<ReportRequest>> parse_report(const Arguments& arguments);

}  // namespace crosstalk::driver
