// SPDX-License-Identifier: Apache-2.0
// One module with all known data. Reads each part when it is first needed.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbolizer/cfg/control_flow.h"
#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/dwarf/lines.h"
#include "symbolizer/dwarf/variables.h"
#include "symbolizer/elf/module_file.h"
#include "symbolizer/elf/symbol_table.h"
#include "symbolizer/loops/loop_anatomy.h"
#include "symbolizer/model/model.h"
#include "symbolizer/unwind/frame_ranges.h"
#include "symbolizer/unwind/frame_rules.h"

namespace crosstalk::symbolizer {

class Module {
 public:
  /// Opens nothing before the first question. `options` and `servers` must outlive the module.
  Module(ModuleSpec spec, const Options& options, Debuginfod& servers)
      : spec_(std::move(spec)), options_(&options), servers_(&servers) {}
  /// Goes on with these instead. Nothing counts as requested yet.
  void serve(const Options& options, Debuginfod& servers) {
    options_ = &options;
    servers_ = &servers;
    asked_ = false;
  }

  [[nodiscard]] const ModuleSpec& spec() const { return spec_; }
  [[nodiscard]] const CodeLocation& locate(std::uint64_t address);
  [[nodiscard]] std::optional<DataSymbol> data_symbol(std::uint64_t address, bool tls);
  [[nodiscard]] std::optional<FieldPath> field(const DataSymbol& symbol, std::uint64_t offset);
  [[nodiscard]] std::optional<AllocatedType> allocated_type(std::uint64_t address);
  [[nodiscard]] std::optional<StackVariable> stack_variable(std::uint64_t code, const StackFrame& frame,
                                                            std::uint64_t data);
  [[nodiscard]] std::optional<FieldPath> field_of(std::uint32_t type, std::uint64_t offset) const;
  [[nodiscard]] std::optional<MemoryAccess> access_at(std::uint64_t address);
  [[nodiscard]] std::optional<MemoryAccess> access_before(std::uint64_t address);
  [[nodiscard]] const FunctionLoops* loops(std::uint64_t address);
  [[nodiscard]] LoopAnatomy* loop_anatomy(std::uint64_t address);
  /// The module address of an offset in the file (ElfFile::address_of); nullopt if the file is missing. Does not count
  /// for missing().
  [[nodiscard]] std::optional<std::uint64_t> address_of(std::uint64_t file_offset);
  /// The loaded segment that holds `address`; nullopt if the file is missing. Does not count as a request, either.
  [[nodiscard]] std::optional<FileSegment> segment_at(std::uint64_t address);
  /// Empty if the file is missing or has no bytes there. Does not count for missing().
  [[nodiscard]] std::span<const std::uint8_t> bytes_at(std::uint64_t address);
  /// The machine code of the function that holds `address`.
  [[nodiscard]] CodeListing listing(std::uint64_t address);
  /// For unwinding; null if the file is missing. Does not count for missing().
  [[nodiscard]] FrameRules* frame_rules();
  /// The reason why requested symbols or lines are missing, with a remedy; nullopt if none is missing or none was
  /// requested.
  [[nodiscard]] std::optional<std::string> missing() const;
  /// True if the loaded file was requested and could not be found.
  [[nodiscard]] bool has_no_file() const { return opened_ && !files_.code; }

 private:
  struct Function {
    AddressRange range;
    const Symbol* symbol = nullptr;  // null: has no name
  };
  struct FunctionCode {
    ControlFlow flow;
    std::optional<FunctionLoops> loops;
    std::unique_ptr<LoopAnatomy> anatomy;
  };
  void open();
  [[nodiscard]] const ElfFile* code() const { return files_.code ? &*files_.code : nullptr; }
  [[nodiscard]] const FrameRanges* frame_ranges();
  [[nodiscard]] std::optional<Function> function_at(std::uint64_t address);
  [[nodiscard]] std::optional<Function> function_of_unsized_symbol(std::uint64_t address);
  [[nodiscard]] CodeLocation find_location(std::uint64_t address);
  [[nodiscard]] FunctionCode* function_code(std::uint64_t address);
  [[nodiscard]] std::string instruction_text(std::uint64_t address, const AddressRange& function);
  [[nodiscard]] std::string named_target(std::uint64_t target, bool is_code) const;
  [[nodiscard]] bool never_returns(std::uint64_t target);
  [[nodiscard]] FunctionLoops find_loops(const ControlFlow& flow);
  [[nodiscard]] AllocatedType numbered(Dwarf_Die type);
  [[nodiscard]] std::optional<Dwarf_Die> variable(std::uint64_t begin, bool tls);
  [[nodiscard]] bool is_tls(const DataSymbol& symbol) const;
  [[nodiscard]] std::string unreadable_sections() const;
  [[nodiscard]] std::string split_remedy() const;

  ModuleSpec spec_;
  const Options* options_;
  Debuginfod* servers_;
  bool opened_ = false;
  bool asked_ = false;
  ModuleFiles files_;
  std::unique_ptr<SymbolTable> symbols_;
  std::unique_ptr<DebugInfo> debug_info_;
  std::unique_ptr<Variables> variables_;
  std::vector<Dwarf_Die> numbered_types_;  // by their numbers
  std::unique_ptr<FrameRanges> frame_ranges_;
  std::unique_ptr<FrameRules> frame_rules_;
  std::unordered_map<std::uint64_t, CodeLocation> locations_;
  std::unordered_map<std::uint64_t, std::unique_ptr<FunctionCode>> functions_;  // by begin
};

}  // namespace crosstalk::symbolizer
