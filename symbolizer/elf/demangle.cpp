// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace crosstalk::symbolizer {
namespace {

// Substitutions make the demangled name grow exponentially with the mangled one; compilers' own names of
// useful length stay below this.
constexpr std::size_t longest_mangled = 4096;
constexpr std::size_t longest_demangled = 1U << 16U;

}  // namespace

std::string demangle(std::string_view symbol) {
  std::string name(symbol.substr(0, symbol.find('@')));
  if (!name.starts_with("_Z") || name.size() > longest_mangled) {
    return name;
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  if (status != 0 || !text) {
    return name;
  }
  std::string demangled(text.get());
  return demangled.size() > longest_demangled ? name : demangled;
}

}  // namespace crosstalk::symbolizer
