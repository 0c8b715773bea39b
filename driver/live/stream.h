// SPDX-License-Identifier: Apache-2.0
// Snapshots as lines of the stream "crosstalk.top/1" (docs/top-json.md). Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "driver/live/snapshot.h"

namespace crosstalk::driver::live {

inline constexpr const char* stream_schema = "crosstalk.top/1";
/// The longest line that is read. One of a program of a thousand threads that all communicate has 1 MB.
inline constexpr std::size_t longest_line = std::size_t{16} << 20U;

/// One JSON object without a line end.
[[nodiscard]] std::string line_of(const Snapshot& snapshot);

/// Reads one line. Fields that are not known are passed over; absent ones and nulls are unknown values. An error says
/// in one line what is wrong: no JSON, another schema, or a field of another type.
[[nodiscard]] Result<Snapshot> read_snapshot(std::string_view line);

/// Cuts bytes as they arrive into lines.
class LineCutter {
 public:
  /// An error: a line is longer than `longest_line`.
  [[nodiscard]] Result<void> add(std::string_view bytes);
  /// The next line without its end; nullopt: none is complete.
  [[nodiscard]] std::optional<std::string> next();
  /// The bytes after the last line end.
  [[nodiscard]] std::string_view rest() const { return std::string_view(bytes_).substr(begin_); }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;     // of the next line
  std::size_t searched_ = 0;  // no line end before
};

}  // namespace crosstalk::driver::live
