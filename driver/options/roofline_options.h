// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk roofline`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "attribution/roofline/roofline.h"
#include "driver/options/command_line.h"
#include "driver/options/view_options.h"

namespace crosstalk::driver {

struct RooflineRequest {
  std::string input = "crosstalk.db", machine;  // machine empty: the profile's, else this user's
  std::string output;                           // empty: standard output
  std::string sysroot;
  std::string against;  // an earlier profile to compare with; empty: none
  std::string matrix;   // a Matrix Market file to place instead of a profile's loops; empty: none
  attribution::RooflineModel model = attribution::RooflineModel::carm;
  attribution::RooflineOptions roofs;  // what is counted and compared
  std::optional<std::uint32_t> loop;   // an id; absent: all
  Format format = Format::text;
  ColorChoice color = ColorChoice::automatic;
  bool pager = true;
  int verbosity = 0;
};

[[nodiscard]] Result<Parsed<RooflineRequest>> parse_roofline(const Arguments& arguments);

}  // namespace crosstalk::driver
