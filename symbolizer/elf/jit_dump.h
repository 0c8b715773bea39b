// SPDX-License-Identifier: Apache-2.0
// Reads a just-in-time compiler's jitdump file (linux, tools/perf/Documentation/jitdump-specification.txt): functions
// with their source lines, their addresses, moves and times.
//
// The recorded program wrote the file, so every size in it is checked. A truncated file, as a killed program leaves it,
// gives the part before the end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

class JitDump {
 public:
  /// nullopt if it is no jitdump of x86-64 code.
  [[nodiscard]] static std::optional<JitDump> parse(std::span<const std::uint8_t> bytes);
  [[nodiscard]] std::int32_t pid() const { return pid_; }
  [[nodiscard]] std::size_t size() const { return placed_.size(); }
  /// The function at a run-time address at a time (CLOCK_MONOTONIC), or the first later one if there was none yet. With
  /// its line if the compiler has recorded it.
  [[nodiscard]] std::optional<Frame> at(std::uint64_t address, std::uint64_t time_ns) const;

 private:
  struct Line {
    std::uint64_t address = 0;  // from the function's begin
    std::uint32_t line = 0;
    std::uint32_t file = 0;
  };
  struct Function {
    std::string name;
    std::vector<Line> lines;  // by address
  };
  struct Placed {
    std::uint64_t begin = 0, bytes = 0, time_ns = 0;
    std::uint32_t function = 0;
  };
  class Parser;
  [[nodiscard]] Frame frame(const Placed& placed, std::uint64_t address) const;

  std::int32_t pid_ = 0;
  std::vector<std::string> files_;
  std::vector<Function> functions_;
  std::vector<Placed> placed_;  // by begin, then time
  std::uint64_t longest_ = 0;   // function
};

}  // namespace crosstalk::symbolizer
