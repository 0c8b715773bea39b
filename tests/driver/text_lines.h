// SPDX-License-Identifier: Apache-2.0
// Text as the lines that a reader sees.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace crosstalk::driver::test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

/// The first line that holds `words`; empty: none does.
inline std::string line_with(const std::string& text, const std::string& words) {
  for (const std::string& line : lines_of(text)) {
    if (line.find(words) != std::string::npos) {
      return line;
    }
  }
  return {};
}

}  // namespace crosstalk::driver::test
