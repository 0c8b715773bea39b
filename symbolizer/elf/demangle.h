// SPDX-License-Identifier: Apache-2.0
// Names as people write them.
#pragma once

#include <string>
#include <string_view>

namespace crosstalk::symbolizer {

/// A linker symbol without its version (`@GLIBC_2.2.5`), demangled when it is a mangled name of C++ or Rust. Names that
/// are too long to demangle safely stay as they are.
[[nodiscard]] std::string demangle(std::string_view symbol);

}  // namespace crosstalk::symbolizer
