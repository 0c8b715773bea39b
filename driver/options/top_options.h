// SPDX-License-Identifier: Apache-2.0
// The command line of `crosstalk top`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/options/command_line.h"
#include "driver/options/record_options.h"
#include "driver/options/view_options.h"

namespace crosstalk::driver {

struct TopRequest {
  std::vector<std::string> recorder;  // options of `crosstalk record`, checked
  std::vector<std::string> command;   // to launch; empty with -p and --from
  std::string from;                   // file with the stream to show; "-": standard input; empty: measure
  double refresh_s = 2, window_s = 10;
  bool once = false, json = false;
  std::uint64_t count = 0;  // pictures after which it ends; 0: none
  DaemonWish daemon = DaemonWish::automatic;
  RecordRequest recording;  // by `recorder` and `command`
  std::string sysroot;
  ColorChoice color = ColorChoice::automatic;
};

[[nodiscard]] Result<Parsed<TopRequest>> parse_top(const Arguments& arguments);

}  // namespace crosstalk::driver
