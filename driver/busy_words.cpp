// SPDX-License-Identifier: Apache-2.0
#include "driver/busy_words.h"

namespace crosstalk::driver {

const char* class_in_words(models::BusyClass which) {
  static constexpr std::array<const char*, models::busy_classes> words = {
      "limited by memory", "limited by L3",
      "limited by L2",     "limited by the floating-point units",
      "limited by L1D",    "not limited by any unit: under-tuned"};
  return words[static_cast<std::size_t>(which)];
}

const char* application_in_words(models::ApplicationClass which) {
  static constexpr std::array<const char*, models::application_classes> words = {
      "matrix multiplication",
      "few bytes an operation, simple body",
      "cache blocking",
      "few bytes an operation, complex body",
      "many bytes an operation, direct access",
      "many bytes an operation, indirect access"};
  return words[static_cast<std::size_t>(which)];
}

}  // namespace crosstalk::driver
