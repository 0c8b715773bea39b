// SPDX-License-Identifier: Apache-2.0
// Questions of attribution about code and data, as an interface, so that every estimator and view can be tested with
// hand-made answers. SymbolizedMap (symbolized_map.h) is the real one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/timeline/address_space.h"
#include "profile/model.h"
#include "symbolizer/loops/waiting.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

/// Not thread-safe: answers are cached.
class CodeMap {
 public:
  CodeMap() = default;
  CodeMap(const CodeMap&) = delete;
  CodeMap& operator=(const CodeMap&) = delete;
  virtual ~CodeMap() = default;

  /// The reference is valid until the next call.
  [[nodiscard]] virtual const symbolizer::CodeLocation& locate(ModulePlace place) = 0;
  /// The file's own address of an offset in it; nullopt: the file is not known.
  [[nodiscard]] virtual std::optional<std::uint64_t> address_of(std::uint32_t /*file*/, std::uint64_t /*file_offset*/) {
    return std::nullopt;
  }
  /// The instruction that ends at `place`, if it touches memory.
  [[nodiscard]] virtual std::optional<symbolizer::MemoryAccess> access_before(ModulePlace place) = 0;
  [[nodiscard]] virtual const symbolizer::FunctionLoops* loops(ModulePlace place) = 0;
  /// The loops there as machine code; null if that is not known. Lives as long as this map.
  [[nodiscard]] virtual symbolizer::LoopAnatomy* loop_anatomy(ModulePlace /*place*/) { return nullptr; }
  /// The loaded segment of the file that holds `place`; nullopt: the file is not known.
  [[nodiscard]] virtual std::optional<symbolizer::FileSegment> segment_at(ModulePlace /*place*/) {
    return std::nullopt;
  }
  /// The module's bytes from `place` on; empty if they are not known.
  [[nodiscard]] virtual std::span<const std::uint8_t> bytes_at(ModulePlace /*place*/) { return {}; }
  /// The machine code of the function there, as text.
  [[nodiscard]] virtual symbolizer::CodeListing listing(ModulePlace /*place*/) { return {{}, "its code is not known"}; }
  /// The function that a process's just-in-time compiler reported at `address` at a time, as Symbolizer::jit_frame.
  [[nodiscard]] virtual std::optional<symbolizer::Frame> jit_frame(std::int32_t pid, std::uint64_t address,
                                                                   std::uint64_t time_ns) = 0;

  [[nodiscard]] virtual std::optional<symbolizer::DataSymbol> data_symbol(ModulePlace place) = 0;
  [[nodiscard]] virtual std::optional<symbolizer::DataSymbol> tls_symbol(std::uint32_t file, std::uint64_t offset) = 0;
  [[nodiscard]] virtual std::optional<symbolizer::FieldPath> field(std::uint32_t file,
                                                                   const symbolizer::DataSymbol& symbol,
                                                                   std::uint64_t offset) = 0;

  /// The type that the call at `place` allocates, and a field of it by the type's number in that file.
  [[nodiscard]] virtual std::optional<symbolizer::AllocatedType> allocated_type(ModulePlace /*call*/) {
    return std::nullopt;
  }
  [[nodiscard]] virtual std::optional<symbolizer::FieldPath> field_of(std::uint32_t /*file*/, std::uint32_t /*type*/,
                                                                      std::uint64_t /*offset*/) {
    return std::nullopt;
  }

  /// Frames of a captured stack, innermost first (Symbolizer::unwind_frames).
  [[nodiscard]] virtual std::vector<symbolizer::StackFrame> unwind(const profile::StackRow& stack,
                                                                   std::span<const MappedModule> modules) = 0;
  /// The variable at run-time address `data` in a frame whose code is at `code`.
  [[nodiscard]] virtual std::optional<symbolizer::StackVariable> stack_variable(ModulePlace /*code*/,
                                                                                const symbolizer::StackFrame& /*frame*/,
                                                                                std::uint64_t /*data*/) {
    return std::nullopt;
  }
};

/// A loop of machine code.
struct CodeLoop {
  symbolizer::LoopAnatomy* anatomy;  // of its function
  std::uint32_t index;
};
/// The innermost loop that holds `place`; nullopt if there is none, or the code is not known.
[[nodiscard]] std::optional<CodeLoop> innermost_loop(CodeMap& code, ModulePlace place);

/// The way in which the instruction that holds `place` updates the word that it accesses.
[[nodiscard]] symbolizer::Update update_at(CodeMap& code, ModulePlace place);

}  // namespace crosstalk::attribution
