// SPDX-License-Identifier: Apache-2.0
// The loops of a profile in the machine's rooflines, in the forms that `crosstalk roofline` prints.
#pragma once

#include <algorithm>
#include <string>

#include "attribution/roofline/roofline.h"
#include "driver/terminal/canvas.h"
#include "models/machine.h"

namespace crosstalk::driver {

/// Everything that the report shows. Its analyses and its machine must outlive it.
struct RooflineReport {
  const attribution::Analysis* analysis = nullptr;
  const models::Machine* machine = nullptr;
  attribution::Roofline roofline;
  const attribution::Roofline* against = nullptr;  // of an earlier profile; null: none is compared with
  bool chosen = false;  // one loop was asked for: the picture shows its vertical and what that meets

  [[nodiscard]] attribution::RooflineModel model() const { return roofline.model; }
  /// The share of the program's CPU time.
  [[nodiscard]] double share_of(double cpu_s) const { return cpu_s / std::max(analysis->cpu_s, 1e-12); }
  /// The place of a loop of `roofline` or `against` in the model; each has one.
  [[nodiscard]] const attribution::RooflinePlace& place(const attribution::RooflineLoop& loop) const {
    return *loop.place(roofline.model);
  }
};

/// The same loop in the earlier profile: of the same function in a file of the same name (without folder), and of
/// the thread of the same number; of several, the one with the most own time.
/// Null: there is none, or no earlier profile.
[[nodiscard]] const attribution::RooflineLoop* former(const RooflineReport& report,
                                                      const attribution::RooflineLoop& loop);

/// Formats "function file.c:8-12"; the function alone if its source is unknown. By thread, its name
/// comes first.
[[nodiscard]] std::string loop_place(const RooflineReport& report, const attribution::RooflineLoop& loop);

/// Tells whose roofs are drawn: "2 threads together", "one of 4 threads".
[[nodiscard]] std::string roofs_of_whom(const attribution::RooflineLoop& loop);

/// Renders a plot and a table for people. Equal reports give equal text.
[[nodiscard]] std::string render_roofline_text(const RooflineReport& report, TextStyle style);
/// Renders an SVG picture that stays legible in grey and at a width of 80 mm.
[[nodiscard]] std::string render_roofline_svg(const RooflineReport& report);
/// Renders the interface "crosstalk.roofline/1" of docs/roofline-json.md, with a newline at its end.
[[nodiscard]] std::string render_roofline_json(const RooflineReport& report);
/// Renders a row for each loop, with the columns of the JSON report and of the chosen model.
[[nodiscard]] std::string render_roofline_csv(const RooflineReport& report);

}  // namespace crosstalk::driver
