// SPDX-License-Identifier: Apache-2.0
#include "driver/terminal/layout.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace crosstalk::driver {

namespace {

struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 1;
  bool valid = true;
};

/// Decodes the first code point of non-empty `text`; overlong forms and surrogates are malformed (RFC 3629).
CodePoint decode(std::string_view text) {
  utf8proc_int32_t value = 0;
  const auto* const bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  const utf8proc_ssize_t size = utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size()), &value);
  return size > 0 ? CodePoint{static_cast<char32_t>(value), static_cast<std::size_t>(size), true}
                  : CodePoint{bytes[0], 1, false};
}

int width_of(const CodePoint& c) { return c.valid ? utf8proc_charwidth(static_cast<utf8proc_int32_t>(c.value)) : 1; }

/// Returns the longest beginning of `text` that takes at most `width` columns.
std::string_view head_of(std::string_view text, int width) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const CodePoint c = decode(text.substr(bytes));
    if (width_of(c) > width) {
      break;
    }
    width -= width_of(c);
    bytes += c.bytes;
  }
  return text.substr(0, bytes);
}

/// Returns the longest end of `text` that takes at most `width` columns.
std::string_view tail_of(std::string_view text, int width) {
  int excess = display_width(text) - width;
  std::size_t bytes = 0;
  while (bytes < text.size() && excess > 0) {
    const CodePoint c = decode(text.substr(bytes));
    excess -= width_of(c);
    bytes += c.bytes;
  }
  return text.substr(bytes);
}

std::string_view ellipsis(Charset charset) { return charset == Charset::utf8 ? "…" : ".."; }

/// Formats three significant digits, without an exponent.
std::string three_digits(double value) {
  return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

struct Scaled {
  double value;
  const char* unit;
};

Scaled scale_seconds(double seconds) {
  const double size = std::fabs(seconds);
  if (size >= 0.9995 || size == 0) {
    return {seconds, "s"};
  }
  if (size >= 0.9995e-3) {
    return {seconds * 1e3, "ms"};
  }
  return size >= 0.9995e-6 ? Scaled{seconds * 1e6, "us"} : Scaled{seconds * 1e9, "ns"};
}

/// True if the words before and behind the space at `space` are a number and its unit, as in "1.89 s," and "3 %".
bool is_number_with_unit(std::string_view text, std::size_t space) {
  constexpr std::array<std::string_view, 9> units = {"s", "ms", "us", "ns", "B", "bytes", "KiB", "MiB", "GiB"};
  if (space == 0 || text[space - 1] < '0' || text[space - 1] > '9') {
    return false;
  }
  const std::string_view next = text.substr(space + 1);
  const std::string_view word = next.substr(0, next.find_first_of(" ,;:.()"));
  return next.starts_with('%') || std::find(units.begin(), units.end(), word) != units.end();
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const CodePoint c = decode(text);
    width += width_of(c);
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string fit_end(std::string_view text, int width, Charset charset) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  const int mark = display_width(ellipsis(charset));
  return width < mark ? std::string(head_of(text, std::max(width, 0)))
                      : std::string(head_of(text, width - mark)).append(ellipsis(charset));
}

std::string fit_middle(std::string_view text, int width, Charset charset) {
  if (display_width(text) <= width) {
    return std::string(text);
  }
  const int room = width - display_width(ellipsis(charset));
  if (room < 2) {
    return fit_end(text, width, charset);
  }
  std::string cut(head_of(text, room - room / 2));
  return cut.append(ellipsis(charset)).append(tail_of(text, room / 2));
}

std::vector<std::string> wrapped(std::string_view text, int width, Charset charset) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    std::size_t space = text.find(' ');
    if (space != std::string_view::npos && is_number_with_unit(text, space)) {
      space = text.find(' ', space + 1);
    }
    const std::string word = fit_middle(text.substr(0, space), width, charset);
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
    if (!lines.back().empty() && display_width(lines.back()) + 1 + display_width(word) > width) {
      lines.emplace_back();
    }
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

std::string pad_right(std::string_view text, int width) {
  const int missing = std::max(0, width - display_width(text));
  return std::string(text).append(static_cast<std::size_t>(missing), ' ');
}

std::string pad_left(std::string_view text, int width) {
  const int missing = std::max(0, width - display_width(text));
  return std::string(static_cast<std::size_t>(missing), ' ').append(text);
}

std::string clean(std::string_view text, Charset charset) {
  // The scope of a file-local name is noise: the reader sees the file beside it.
  constexpr std::string_view file_local = "(anonymous namespace)::";
  std::string shown;
  while (!text.empty()) {
    if (text.starts_with(file_local)) {
      text.remove_prefix(file_local.size());
      continue;
    }
    const CodePoint c = decode(text);
    const bool control = c.value < 0x20 || (c.value >= 0x7f && c.value < 0xa0) ||
                         (c.value >= 0x202a && c.value <= 0x202e) || (c.value >= 0x2066 && c.value <= 0x2069);
    if (!c.valid || control || (charset == Charset::ascii && c.value >= 0x80)) {
      shown += c.valid || charset == Charset::ascii ? "?" : "\xef\xbf\xbd";
    } else {
      shown.append(text.substr(0, c.bytes));
    }
    text.remove_prefix(c.bytes);
  }
  return shown;
}

std::string as_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const CodePoint c = decode(text);
    valid.append(c.valid ? text.substr(0, c.bytes) : "\xef\xbf\xbd");
    text.remove_prefix(c.bytes);
  }
  return valid;
}

std::string bar(double share, int width, Charset charset) {
  static constexpr std::array<const char*, 8> eighths = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double columns = std::clamp(std::isfinite(share) ? share : 0.0, 0.0, 1.0) * width;
  std::string text;
  if (charset == Charset::ascii) {
    text.assign(static_cast<std::size_t>(std::lround(columns)), '#');
    return pad_right(text, width);
  }
  const auto parts = static_cast<std::size_t>(std::lround(columns * 8));
  for (std::size_t i = 0; i < parts / 8; ++i) {
    text += "█";
  }
  return pad_right(text + eighths[parts % 8], width);
}

std::string seconds_text(double seconds) {
  const Scaled scaled = scale_seconds(seconds);
  return seconds == 0 ? "0 s" : three_digits(scaled.value) + " " + scaled.unit;
}

std::string short_seconds_text(double seconds) {
  const Scaled scaled = scale_seconds(seconds);
  return seconds == 0 ? "0s" : three_digits(scaled.value) + scaled.unit;
}

std::string rough_seconds_text(double seconds) {
  const double step = seconds > 0 ? std::pow(10, std::floor(std::log10(seconds))) : 1;
  const Scaled scaled = scale_seconds(std::round(seconds / step) * step);
  return fmt::format("~{:.0f}{}", scaled.value, scaled.unit);
}

std::string percent_text(double share) {
  const double percent = share * 100;
  return percent > 0 && percent < 0.05 ? "< 0.1 %" : fmt::format("{:.1f} %", percent);
}

std::string count_text(double count) {
  if (count < 999.5) {
    return count == std::floor(count) || count >= 99.95 ? fmt::format("{:.0f}", count) : three_digits(count);
  }
  static constexpr std::array<const char*, 4> units = {" k", " M", " G", " T"};
  std::size_t unit = 0;
  count /= 1000;
  while (count >= 999.5 && unit + 1 < units.size()) {
    count /= 1000;
    ++unit;
  }
  return three_digits(count) + units[unit];
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1024) {
    return std::to_string(bytes) + " B";
  }
  static constexpr std::array<const char*, 4> units = {" KiB", " MiB", " GiB", " TiB"};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return (value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{:.1f}", value)) + units[unit];
}

}  // namespace crosstalk::driver
