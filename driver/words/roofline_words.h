// SPDX-License-Identifier: Apache-2.0
// Names and sentences of rooflines, the same in every format.
#pragma once

#include <string>

#include "attribution/roofline/roofline.h"
#include "driver/options/roofline_options.h"

namespace crosstalk::driver {

/// "memory", "mixed", "compute", "undecided".
[[nodiscard]] const char* region_name(models::roofline::Region region);
/// The words of the JSON report: "access_pattern", ...
[[nodiscard]] const char* advice_name(models::roofline::Advice advice);
/// A clause that tells what to do: "use vector instructions".
[[nodiscard]] std::string advice_in_words(models::roofline::Advice advice);

/// Names the roofs that hold a loop, in a few words: "memory", "between L3 and memory", "floating-point units".
[[nodiscard]] std::string bound_in_words(const attribution::RooflineLoop& loop, RooflineModel model);
/// The most that the loop may gain at the roof above it: "3.1 x"; "-": it is not known.
[[nodiscard]] std::string gain_in_words(const attribution::RooflineLoop& loop, RooflineModel model);
/// One or two sentences on a loop: what holds it, and what to do.
[[nodiscard]] std::string verdict_in_words(const attribution::RooflineLoop& loop, RooflineModel model);

/// "1.35 times as fast as before, 21.1 Gflop/s": how the loop compares with its former self.
[[nodiscard]] std::string change_in_words(const attribution::RooflineLoop& before,
                                          const attribution::RooflineLoop& after);

/// "12.3 Gflop/s", "1.50 GB/s"; three significant digits.
[[nodiscard]] std::string rate_in_words(double per_s, const char* unit);
/// "0.0833": flop/B.
[[nodiscard]] std::string intensity_in_words(double flops_per_byte);

}  // namespace crosstalk::driver
