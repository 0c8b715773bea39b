// SPDX-License-Identifier: Apache-2.0
// Names and sentences of rooflines, the same in every format.
#pragma once

#include <string>

#include "attribution/roofline/roofline.h"

namespace crosstalk::driver {

/// "carm", "orm", ...: the words of `--model`.
[[nodiscard]] const char* model_name(attribution::RooflineModel model);
/// "float", "fp64", "fp32", "int": the words of `--ops`.
[[nodiscard]] const char* ops_name(attribution::CountedOperations ops);
/// "Cache-aware roofline", ...
[[nodiscard]] const char* model_title(attribution::RooflineModel model);

/// "memory", "mixed", "compute", "undecided".
[[nodiscard]] const char* region_name(models::roofline::Region region);
/// The words of the JSON report: "access_pattern", ...
[[nodiscard]] const char* advice_name(models::roofline::Advice advice);
/// A clause that tells what to do: "use vector instructions".
[[nodiscard]] std::string advice_in_words(models::roofline::Advice advice);
/// "vectors", "multiply_add", "independent_operations", "all".
[[nodiscard]] const char* feature_name(models::roofline::Feature feature);
/// "below", "inside", "above", "undecided".
[[nodiscard]] const char* band_position_name(models::roofline::BandPosition position);

/// The units of a model's axes.
struct AxisWords {
  const char* x;       // "flop/B"
  const char* y_unit;  // "flop/s"; of instructions a cycle "IPC"
};
[[nodiscard]] AxisWords axis_words(attribution::RooflineModel model, attribution::CountedOperations ops);

// The place that the loop has in `model` must exist in all of the following.
/// Names the roofs that hold a loop, in a few words: "memory", "L3 to memory", "FP units".
[[nodiscard]] std::string bound_in_words(const attribution::RooflineLoop& loop, attribution::RooflineModel model);
/// The most that the loop may gain at the roof above it: "3.1 x"; "-": it is not known.
[[nodiscard]] std::string gain_in_words(const attribution::RooflineLoop& loop, attribution::RooflineModel model);
/// A few sentences on a loop: the bottleneck, the bound on its gain, and what to do.
[[nodiscard]] std::string verdict_in_words(const attribution::RooflineLoop& loop, attribution::RooflineModel model);

/// "1.35 times as fast as before, 21.1 Gflop/s": how the loop compares with its former self.
[[nodiscard]] std::string change_in_words(const attribution::RooflineLoop& before,
                                          const attribution::RooflineLoop& after, attribution::RooflineModel model);

/// "12.3 Gflop/s", "1.50 GB/s"; three significant digits.
[[nodiscard]] std::string rate_in_words(double per_s, const char* unit);
/// A value of the y axis: as `rate_in_words`, or "1.25 IPC".
[[nodiscard]] std::string height_in_words(double value, const char* unit);
/// The height of a roof: "98.2 GB/s", "48 Gflop/s", "4 IPC".
[[nodiscard]] std::string roof_in_words(const models::roofline::Roof& roof, attribution::CountedOperations ops);
/// "0.0833": flop/B.
[[nodiscard]] std::string intensity_in_words(double flops_per_byte);

}  // namespace crosstalk::driver
