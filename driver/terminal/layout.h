// SPDX-License-Identifier: Apache-2.0
// Lays text out by terminal columns, not by bytes. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::driver {

enum class Charset { ascii, utf8 };

/// Returns the columns that UTF-8 `text` takes: 0 for combining marks and controls, 2 for wide East Asian characters
/// and emoji. A malformed byte counts 1.
[[nodiscard]] int display_width(std::string_view text);

// Cut `text` to `width` columns (>= 0), with an ellipsis at the cut: at its end, or in its middle, which keeps both the
// namespace and the arguments of a long C++ name.
[[nodiscard]] std::string fit_end(std::string_view text, int width, Charset charset);
[[nodiscard]] std::string fit_middle(std::string_view text, int width, Charset charset);
/// Lines of words, none wider than `width`; at least one. A unit stays with its number.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, int width, Charset charset);

[[nodiscard]] std::string pad_right(std::string_view text, int width);  // text, then spaces
[[nodiscard]] std::string pad_left(std::string_view text, int width);   // spaces, then text

/// Returns `text` with control characters as '?' and malformed UTF-8 as U+FFFD or '?', because names come from programs
/// and may be hostile to a terminal. Drops "(anonymous namespace)::".
[[nodiscard]] std::string clean(std::string_view text, Charset charset);

/// Returns `text` with each malformed byte of UTF-8 as U+FFFD, because readers reject malformed files.
[[nodiscard]] std::string as_utf8(std::string_view text);

/// Returns a bar of `share` (0..1), in eighths of a column if the character set has them, padded to `width` columns.
[[nodiscard]] std::string bar(double share, int width, Charset charset);

// Numbers for people: three significant digits and a unit.
[[nodiscard]] std::string seconds_text(double seconds);        // "1.23 s", "340 ms", "12.3 us", "0 s"
[[nodiscard]] std::string rough_seconds_text(double seconds);  // "~5ms", "~40ms", "~1s": one digit
[[nodiscard]] std::string short_seconds_text(double seconds);  // "1.23s", "340ms": at most 6 columns below 10^5 s
[[nodiscard]] std::string percent_text(double share);          // "12.3 %", "< 0.1 %"
[[nodiscard]] std::string count_text(double count);            // "731", "12.3 k", "4.56 M"
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);     // "64 B", "1.5 KiB"

}  // namespace crosstalk::driver
