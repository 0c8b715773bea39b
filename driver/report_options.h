// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk report`.
#pragma once

#include <optional>
#include <string>

#include "driver/command_line.h"

namespace crosstalk::driver {

enum class View { summary, matrix, lines, objects, loops, threads };
enum class By { thread, core };
enum class Format { text, json, csv };
enum class ColorChoice { automatic, always, never };

struct ReportRequest {
  std::string input = "crosstalk.db";
  std::optional<View> view;  // absent: the summary as text or CSV, everything as JSON
  By by = By::thread;
  Format format = Format::text;
  std::string estimator = "automatic";
  std::string sysroot;
  bool pager = true;
  ColorChoice color = ColorChoice::automatic;
  int verbosity = 0;
};

[[nodiscard]] Result<Parsed<ReportRequest>> parse_report(const Arguments& arguments);

}  // namespace crosstalk::driver
