// SPDX-License-Identifier: Apache-2.0
// CodeMap that uses the symbolizer.
#pragma once

#include <unordered_map>
#include <vector>

#include "attribution/program/code_map.h"

namespace crosstalk::attribution {

class SymbolizedMap final : public CodeMap {
 public:
  /// Registers the files of `spaces` and the JIT maps of `processes`.
  SymbolizedMap(const AddressSpaces& spaces, std::span<const profile::ProcessRow> processes,
                const symbolizer::Options& options);

  const symbolizer::CodeLocation& locate(ModulePlace place) override;
  std::optional<std::uint64_t> address_of(std::uint32_t file, std::uint64_t file_offset) override;
  std::optional<symbolizer::MemoryAccess> access_before(ModulePlace place) override;
  const symbolizer::FunctionLoops* loops(ModulePlace place) override;
  symbolizer::LoopAnatomy* loop_anatomy(ModulePlace place) override;
  std::optional<symbolizer::FileSegment> segment_at(ModulePlace place) override;
  std::span<const std::uint8_t> bytes_at(ModulePlace place) override;
  symbolizer::CodeListing listing(ModulePlace place) override;
  std::optional<symbolizer::Frame> jit_frame(std::int32_t pid, std::uint64_t address, std::uint64_t time_ns) override;
  std::optional<symbolizer::DataSymbol> data_symbol(ModulePlace place) override;
  std::optional<symbolizer::DataSymbol> tls_symbol(std::uint32_t file, std::uint64_t offset) override;
  std::optional<symbolizer::FieldPath> field(std::uint32_t file, const symbolizer::DataSymbol& symbol,
                                             std::uint64_t offset) override;
  std::optional<symbolizer::AllocatedType> allocated_type(ModulePlace call) override;
  std::optional<symbolizer::FieldPath> field_of(std::uint32_t file, std::uint32_t type, std::uint64_t offset) override;
  std::vector<symbolizer::StackFrame> unwind(const profile::StackRow& stack,
                                             std::span<const MappedModule> modules) override;
  std::optional<symbolizer::StackVariable> stack_variable(ModulePlace code, const symbolizer::StackFrame& frame,
                                                          std::uint64_t data) override;

  [[nodiscard]] std::vector<symbolizer::Symbolizer::Missing> missing() const { return symbolizer_.missing(); }

 private:
  symbolizer::Symbolizer symbolizer_;
  std::vector<ModuleId> modules_;                                                                     // by file
  std::vector<std::unordered_map<std::uint64_t, std::optional<symbolizer::MemoryAccess>>> accesses_;  // by file
};

}  // namespace crosstalk::attribution
