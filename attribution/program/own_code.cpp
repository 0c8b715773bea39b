// SPDX-License-Identifier: Apache-2.0
#include "attribution/program/own_code.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/collector_name.h"

namespace crosstalk::attribution {
namespace {

using std::string_view;

template <std::size_t N>
bool any_begins(string_view text, const std::array<string_view, N>& beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(), [&](string_view b) { return text.starts_with(b); });
}
template <std::size_t N>
bool holds_any(string_view text, const std::array<string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](string_view part) { return text.find(part) != string_view::npos; });
}

bool is_library_source(string_view file) {
  static constexpr std::array<string_view, 6> folders = {"/usr/include/", "/usr/lib/gcc", "/usr/lib/llvm",
                                                         "/rustc/",       "/usr/lib/go",  "/usr/local/go/src/"};
  static constexpr std::array<string_view, 9> parts = {"/include/c++/",     "/lib/clang/",         "/library/core/src/",
                                                       "/library/std/src/", "/library/alloc/src/", "/.cargo/registry/",
                                                       "/libgomp/",         "/libstdc++-v3/",      "/libgcc/"};
  return any_begins(file, folders) || holds_any(file, parts);
}

/// True for a name in a language's namespace. A template's result type may precede it.
bool is_library_name(string_view function) {
  static constexpr std::array<string_view, 9> scopes = {
      "std::", "__gnu_cxx::", "core::", "alloc::", "runtime.", "__gnu_", "operator new", "operator delete", "std::__"};
  if (any_begins(function, scopes) || function.starts_with("<core::") || function.starts_with("<alloc::") ||
      function.starts_with("<std::")) {
    return true;
  }
  const std::size_t space = function.find(' ');
  const std::size_t bracket = function.find_first_of("<(");
  return space != string_view::npos && space < bracket && any_begins(function.substr(space + 1), scopes);
}

}  // namespace

bool is_runtime_library(const std::string& path) {
  static constexpr std::array<string_view, 22> stems = {
      "libc.so",    "libc-",         "libm.so",     "libstdc++.so", "libc++.so",   "libc++abi.",
      "libgcc_s.",  "libcrosstalk.", "ld-linux",    "ld-musl",      "libpthread",  "librt.so",
      "libgomp.so", "libomp.so",     "libiomp5.so", "libjemalloc",  "libtcmalloc", "libmimalloc",
      "libstd-",    "libgo.so",      "libatomic.",  "linux-vdso.so"};
  return any_begins(base_name(path), stems);
}

bool is_collector(const std::string& path) { return is_collector_file(path); }

bool is_library_code(const symbolizer::Frame& frame) {
  return frame.source.file.empty() ? is_library_name(frame.function)
                                   : is_library_source(frame.source.file) || is_library_name(frame.function);
}

bool in_runtime_library(const ProgramView& view, Moment moment, std::uint64_t address) {
  const auto place = view.spaces().find(moment, address);
  return place && is_runtime_library(view.spaces().files()[place->file].path);
}

bool is_all_library(const ProgramView& view, Moment moment, std::uint64_t address) {
  const std::vector<symbolizer::Frame> frames = view.frames(moment, address);
  return in_runtime_library(view, moment, address) || std::all_of(frames.begin(), frames.end(), is_library_code);
}

OwnPlace own_place(const ProgramView& view, Moment moment, std::uint64_t instruction,
                   std::span<const std::uint64_t> stack) {
  std::vector<symbolizer::Frame> frames = view.frames(moment, instruction);
  if (frames.empty()) {
    return {};
  }
  const symbolizer::Frame innermost = frames.front();
  for (std::size_t depth = 0;; ++depth) {
    // A return address may be the first byte of the next line, or of the next function: looks up the call before it.
    const std::uint64_t address = depth == 0 ? instruction : stack[depth] - 1;
    if (depth > 0) {
      frames = view.frames(moment, address);
    }
    if (!in_runtime_library(view, moment, address)) {
      const auto own = std::find_if_not(frames.begin(), frames.end(), is_library_code);
      if (own != frames.end() && !is_unknown(*own)) {
        const bool itself = depth == 0 && own == frames.begin();
        return {std::move(*own), itself ? std::string() : innermost.function, address};
      }
    }
    if (depth + 1 >= stack.size()) {
      return {innermost, {}, instruction};
    }
  }
}

}  // namespace crosstalk::attribution
