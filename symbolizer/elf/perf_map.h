// SPDX-License-Identifier: Apache-2.0
// Symbols that a just-in-time compiler writes to /tmp/perf-PID.map: lines of "BEGIN SIZE NAME", hexadecimal.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::symbolizer {

class PerfMap {
 public:
  /// Parses the text and ignores lines that are no symbols. A line within an earlier one is a part of it. Any other
  /// line that overlaps an earlier one replaces it: the compiler has reused the memory, and never retracts a line.
  explicit PerfMap(std::string_view text);

  /// Name of the symbol that holds `address` (a run-time address).
  [[nodiscard]] std::optional<std::string> at(std::uint64_t address) const;
  /// The number of symbols that no other has replaced.
  [[nodiscard]] std::size_t size() const;

 private:
  struct Symbol {
    std::uint64_t begin = 0, end = 0;
    std::string name;
    std::uint32_t around = none;  // the symbol that it lies within
    bool replaced = false;
  };
  struct Piece {  // of memory, of the latest symbol that has it
    std::uint64_t end = 0;
    std::uint32_t symbol = 0;
  };
  static constexpr std::uint32_t none = UINT32_MAX;
  void add(std::uint64_t begin, std::uint64_t end, std::string_view name);

  std::vector<Symbol> symbols_;            // in the order of the file
  std::map<std::uint64_t, Piece> pieces_;  // by begin; they do not overlap
};

}  // namespace crosstalk::symbolizer
