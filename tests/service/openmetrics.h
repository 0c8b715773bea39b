// SPDX-License-Identifier: Apache-2.0
// A reader of OpenMetrics text (the standard of prometheus.io, version 1.0), by itself: it knows nothing of the writer.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace crosstalk::service::openmetrics {

using Labels = std::map<std::string, std::string>;

struct Family {
  std::string type, unit, help;
  std::vector<std::pair<Labels, double>> samples;
};

struct Exposition {
  std::map<std::string, Family> families;
  std::string fault;  // the first breach of the standard, with its line; empty: there is none

  /// The value of a sample; NaN: there is none.
  [[nodiscard]] double value(const std::string& family, const Labels& labels = {}) const;
};

[[nodiscard]] Exposition parse(const std::string& text);

}  // namespace crosstalk::service::openmetrics
