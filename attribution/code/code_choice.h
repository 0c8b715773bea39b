// SPDX-License-Identifier: Apache-2.0
// Selects the functions whose machine code a user requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "symbolizer/model/model.h"

namespace crosstalk::attribution {

/// The requested code: a source file, a line of it, a function, or an address as "libx.so+0x1234".
struct CodeWanted {
  std::string name;        // empty: the function that costs most
  std::uint32_t line = 0;  // 0: none
};

/// A function in which threads were sampled or seen to communicate.
struct CodeCandidate {
  std::string function, module;
  std::uint64_t begin = 0, end = 0;  // the module's own addresses; 0: not known
  std::set<std::string> names;       // of functions inlined where something was seen, and its own
  std::set<std::string> files;       // source files of what was seen
  std::string refusal;               // why its code cannot be shown; empty: it may be
};

/// Indices into `candidates`, in their order. Finds functions by their name with or without parameters, template
/// arguments and scopes, files by their path or the end of it.
[[nodiscard]] Result<std::vector<std::size_t>> choose_code(const std::vector<CodeCandidate>& candidates,
                                                           const CodeWanted& wanted);

/// True if one of an instruction's frames is on the requested line, or if no line is requested.
[[nodiscard]] bool is_of_line(std::span<const symbolizer::Frame> frames, const CodeWanted& wanted);

}  // namespace crosstalk::attribution
