// SPDX-License-Identifier: Apache-2.0
#include "driver/csv/field.h"

#include <fmt/format.h>

#include <string_view>

#include "base/number.h"
#include "driver/terminal/layout.h"

namespace crosstalk::driver {
namespace {

/// True if the bytes at `at` are a control character beyond ASCII (U+0080..U+009F) in UTF-8.
bool is_high_control(const std::string& text, std::size_t at) {
  return at + 1 < text.size() && text[at] == '\xc2' && static_cast<unsigned char>(text[at + 1]) >= 0x80 &&
         static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

/// Replaces control characters by \xNN, except for line breaks and tabs.
std::string without_controls(const std::string& text) {
  std::string shown;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool low = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
    if (is_high_control(text, i)) {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    } else {
      shown += low ? fmt::format("\\x{:02x}", byte) : std::string(1, text[i]);
    }
  }
  return shown;
}

/// True if a spreadsheet would compute the text instead of showing it: a program's name could inject a formula.
bool is_formula(const std::string& text) {
  if (text.empty() || std::string_view("=+-@").find(text.front()) == std::string_view::npos) {
    return false;
  }
  return !whole_number<double>(text);
}

}  // namespace

std::string csv_field(const std::string& text) {
  std::string shown = (is_formula(text) ? "'" : "") + without_controls(as_utf8(text));
  if (shown.find_first_of(",\"\n") == std::string::npos) {
    return shown;
  }
  std::string quoted = "\"";
  for (const char c : shown) {
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return quoted + "\"";
}

}  // namespace crosstalk::driver
