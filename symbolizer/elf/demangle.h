// SPDX-License-Identifier: Apache-2.0
// Demangles symbol names.
#pragma once

#include <string>
#include <string_view>

namespace crosstalk::symbolizer {

/// A linker symbol without its version (`@GLIBC_2.2.5`); demangles mangled names of C++ and Rust. Leaves names
/// unchanged that are too long to demangle safely.
[[nodiscard]] std::string demangle(std::string_view symbol);

}  // namespace crosstalk::symbolizer
