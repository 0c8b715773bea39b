// SPDX-License-Identifier: Apache-2.0
// Separates the program's own code from libraries. A user can change the former; the called code (std::atomic, an
// allocator, an OpenMP runtime) is only where it happened.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// True for a run-time library of C, C++, Rust, Go or OpenMP, an allocator, the loader, or the collector itself, by the
/// module's path.
[[nodiscard]] bool is_runtime_library(const std::string& path);

/// True for the collector's own library, by the module's path.
[[nodiscard]] bool is_collector(const std::string& path);

/// True if `address` lies in a run-time library.
[[nodiscard]] bool in_runtime_library(const ProgramView& view, Moment moment, std::uint64_t address);

/// True for code of such a library that was compiled into a program: by its source file (headers of compilers and of
/// the system, sources of Rust's and Go's standard libraries), or by its name if the file is not known.
[[nodiscard]] bool is_library_code(const symbolizer::Frame& frame);

/// True if nothing at `address` is the program's own: it lies in a run-time library, or all its frames are library
/// code.
[[nodiscard]] bool is_all_library(const ProgramView& view, Moment moment, std::uint64_t address);

/// A place in the program's own code, and the library function that it was calling.
struct OwnPlace {
  symbolizer::Frame frame;
  std::string through;        // the library's function where the access is, called from `frame`; empty: `frame` itself
  std::uint64_t address = 0;  // of its code, at run time
};

/// The innermost place of a call path in the program's own code: among the frames at `instruction`, else among those of
/// the callers on `stack` (element 0 is the interrupted address itself). If there is none, the instruction's own frame.
[[nodiscard]] OwnPlace own_place(const ProgramView& view, Moment moment, std::uint64_t instruction,
                                 std::span<const std::uint64_t> stack);

}  // namespace crosstalk::attribution
