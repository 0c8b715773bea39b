// SPDX-License-Identifier: Apache-2.0
#include "driver/roofline/report.h"

#include <algorithm>

#include "driver/text/report.h"

namespace crosstalk::driver {

const attribution::RooflineLoop* former(const RooflineReport& report, const attribution::RooflineLoop& loop) {
  if (report.against == nullptr) {
    return nullptr;
  }
  const auto file_name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  const auto& loops = report.against->loops;
  const auto found = std::find_if(loops.begin(), loops.end(), [&](const attribution::RooflineLoop& other) {
    return other.loop->function == loop.loop->function && file_name(other.loop->file) == file_name(loop.loop->file);
  });
  return found != loops.end() ? &*found : nullptr;
}

std::string loop_place(const attribution::LoopRow& loop) {
  const std::string place = source_text(loop.file, loop.line_begin, loop.line_end);
  return loop.function + (place.empty() ? "" : " " + place);
}

}  // namespace crosstalk::driver
