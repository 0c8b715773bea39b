// SPDX-License-Identifier: Apache-2.0
#include "models/words.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace crosstalk::models {
namespace {

std::string printed(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

}  // namespace

std::string percent(double share) {
  const double value = 100 * share;
  return printed(value > 0 && value < 1 ? "%.1f %%" : "%.0f %%", value);
}

std::string enumerated(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

std::string figure(double value) {
  if (!std::isfinite(value)) {
    return "infinitely many";
  }
  const double magnitude = std::abs(value);
  return magnitude >= 100 ? printed("%.0f", value) : printed("%.3g", value);
}

}  // namespace crosstalk::models
