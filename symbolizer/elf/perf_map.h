// SPDX-License-Identifier: Apache-2.0
// Symbols that a just-in-time compiler writes to /tmp/perf-PID.map: lines of "BEGIN SIZE NAME", hexadecimal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crosstalk::symbolizer {

class PerfMap {
 public:
  /// Parses the text; lines that are no symbols are left out. Of symbols with one address the last counts: the
  /// compiler has reused the memory.
  explicit PerfMap(std::string_view text);
  /// Reads a regular file of at most 1 GiB; nullopt when it is not there.
  [[nodiscard]] static std::optional<PerfMap> read(const std::string& path);

  /// Name of the symbol that holds `address` (a run-time address).
  [[nodiscard]] std::optional<std::string> at(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return symbols_.size(); }

 private:
  struct Symbol {
    std::uint64_t begin = 0, bytes = 0;
    std::string name;
  };
  std::vector<Symbol> symbols_;  // sorted by begin, unique
};

}  // namespace crosstalk::symbolizer
