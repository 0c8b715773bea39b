// SPDX-License-Identifier: Apache-2.0
#include "driver/words/busy_words.h"

#include <fmt/format.h>

#include <cmath>

#include "driver/terminal/layout.h"

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

std::string stacked(const models::CycleAccount& account, int columns) {
  const double total = account.total();
  std::string text;
  double until = 0;
  for (const WaitPart& part : wait_parts) {
    until += total > 0 ? account[part.which].value_or(0) / total : 0;
    const auto end = static_cast<std::size_t>(std::lround(until * columns));
    text.append(end > text.size() ? end - text.size() : 0, part.letter);
  }
  return text;
}

std::string waits_in_words(const models::CycleAccount& account) {
  constexpr double worth_saying = 0.005;
  const double total = account.total();
  std::string text;
  for (const WaitPart& part : wait_parts) {
    const double share = total > 0 ? account[part.which].value_or(0) / total : 0;
    if (share >= worth_saying) {
      // Blocked time includes the wait for a processor unless that wait is known.
      const bool either = part.which == models::CycleClass::blocked && !account[models::CycleClass::runnable];
      text += fmt::format("{}{} {} {}", text.empty() ? "" : ", ", part.letter,
                          either ? "asleep or waiting for a processor" : part.words, percent_text(share));
    }
  }
  return text;
}

}  // namespace crosstalk::driver
