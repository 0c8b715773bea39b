// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/demangle.h"

#include <cxxabi.h>
#define HAVE_DECL_BASENAME 1  // libiberty.h declares one of its own otherwise
#include <libiberty/demangle.h>

#include <csetjmp>
#include <cstdlib>
#include <memory>
#include <optional>

namespace crosstalk::symbolizer {
namespace {

// Substitutions make the demangled name grow exponentially with the mangled one; compilers' own names of
// useful length stay below this.
constexpr std::size_t longest_mangled = 4096;
constexpr std::size_t longest_demangled = 1U << 16U;

struct Output {
  std::string text;
  std::jmp_buf enough;
};

void append(const char* characters, std::size_t count, void* to) {
  auto& output = *static_cast<Output*>(to);
  if (output.text.size() + count > longest_demangled) {
    std::longjmp(output.enough, 1);  // NOLINT(cert-err52-cpp): the library has no other way to be stopped
  }
  output.text.append(characters, count);
}

/// False if it is not a Rust name, or if the result would be too long. Neither this nor append() may have objects with
/// destructors when longjmp leaves the library, which holds no memory during callbacks.
bool demangle_rust(const char* name, Output& output) {
  if (setjmp(output.enough) != 0) {  // NOLINT(cert-err52-cpp): see append()
    return false;
  }
  return rust_demangle_callback(name, 0, append, &output) != 0;
}

std::optional<std::string> demangle_cxx(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? std::optional<std::string>(text.get()) : std::nullopt;
}

}  // namespace

std::string demangle(std::string_view symbol) {
  std::string name(symbol.substr(0, symbol.find('@')));
  const bool mangled = name.starts_with("_Z") || name.starts_with("_R");
  if (!mangled || name.size() > longest_mangled) {
    return name;
  }
  Output rust;  // before C++: Rust's older names are C++ names that end in a hash
  if (demangle_rust(name.c_str(), rust)) {
    return rust.text;
  }
  const auto demangled = demangle_cxx(name);
  return demangled && demangled->size() <= longest_demangled ? *demangled : name;
}

}  // namespace crosstalk::symbolizer
