// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "driver/terminal/layout.h"

namespace crosstalk::driver {

/// Strings by number, each once, as UTF-8. 0 is the empty string.
class StringTable {
 public:
  StringTable() { (void)number_of(""); }
  [[nodiscard]] std::int64_t number_of(const std::string& text) {
    const auto [number, fresh] = numbers_.try_emplace(text, static_cast<std::int64_t>(strings_.size()));
    if (fresh) {
      strings_.push_back(as_utf8(text));
    }
    return number->second;
  }
  [[nodiscard]] const std::vector<std::string>& strings() const { return strings_; }

 private:
  std::unordered_map<std::string, std::int64_t> numbers_;
  std::vector<std::string> strings_;
};

}  // namespace crosstalk::driver
