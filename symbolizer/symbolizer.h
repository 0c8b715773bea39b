// SPDX-License-Identifier: Apache-2.0
// Meaning of code and data addresses: functions, lines, inlining, data symbols, struct fields, instructions,
// loops and call stacks. Knows nothing of profiles. Not thread-safe: one Symbolizer a thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/registers.h"
#include "symbolizer/model.h"

namespace crosstalk::symbolizer {

class LoopAnatomy;  // loop_anatomy.h

class Symbolizer {
 public:
  explicit Symbolizer(Options options = {});
  ~Symbolizer();
  Symbolizer(Symbolizer&&) noexcept;

  /// Registers a module (once for equal path, build id and contents). Never fails: a file that is missing or damaged
  /// gives a module that knows nothing; see missing().
  ModuleId add_module(const ModuleSpec& spec);
  /// What just-in-time compilers have left of a process, if the files are there: /tmp/perf-PID.map, and jit-PID.dump at
  /// `jit_dump` or else where compilers put it: /tmp, the current folder, .debug/jit/* of JITDUMPDIR and of HOME. All
  /// of them under sysroot first.
  void add_jit_symbols(std::int32_t pid, const std::string& jit_dump = {});
  /// Compiled code at a run-time address of a process, at a time (jit_dump.h).
  [[nodiscard]] std::optional<Frame> jit_frame(std::int32_t pid, std::uint64_t address, std::uint64_t time_ns) const;

  [[nodiscard]] const CodeLocation& locate(ModuleId module, std::uint64_t address);  // cached
  [[nodiscard]] std::optional<DataSymbol> data_symbol(ModuleId module, std::uint64_t address);
  [[nodiscard]] std::optional<DataSymbol> tls_symbol(ModuleId module, std::uint64_t tls_block_offset);
  /// The field at `offset` in the global or TLS object called by `symbol`.
  [[nodiscard]] std::optional<FieldPath> field(ModuleId module, const DataSymbol& symbol, std::uint64_t offset);

  /// The type of what the call at `address` (a byte of the call instruction) allocates, where debug information tells
  /// (dwarf/allocated_types.h). One element of it where there are several.
  [[nodiscard]] std::optional<AllocatedType> allocated_type(ModuleId module, std::uint64_t address);
  /// The field at `offset` in an object of a type that allocated_type() gave.
  [[nodiscard]] std::optional<FieldPath> field_of(ModuleId module, std::uint32_t type, std::uint64_t offset);

  /// The instruction that ends at `address` (found from the function's control flow), if it touches memory.
  [[nodiscard]] std::optional<MemoryAccess> access_before(ModuleId module, std::uint64_t address);
  [[nodiscard]] std::optional<MemoryAccess> access_at(ModuleId module, std::uint64_t address);
  /// Loops of the function that holds `address`; null when the function or its code is unknown. Cached.
  [[nodiscard]] const FunctionLoops* loops(ModuleId module, std::uint64_t address);

  /// The loops of that function as machine code, numbered as in loops(); null as there. Lives as long as this.
  [[nodiscard]] LoopAnatomy* loop_anatomy(ModuleId module, std::uint64_t address);

  /// The module address of a place in the module's file, from which code was mapped; nullopt: the file is not known.
  [[nodiscard]] std::optional<std::uint64_t> address_of(ModuleId module, std::uint64_t file_offset);

  /// The module's bytes from `address` on, as in its file; empty when they are not known. Lives as long as this.
  [[nodiscard]] std::span<const std::uint8_t> bytes_at(ModuleId module, std::uint64_t address);

  /// The machine code of the function that holds `address`, as text.
  [[nodiscard]] CodeListing listing(ModuleId module, std::uint64_t address);

  /// Return addresses of the callers of registers[rip], innermost first, registers[rip] itself as element 0.
  /// Uses .eh_frame/.debug_frame of the mapped modules, then the frame pointer. Stops at the end of `stack`
  /// (memory from registers[rsp] upward), at `max_frames`, or where nothing is known.
  [[nodiscard]] std::vector<std::uint64_t> unwind(const Registers& registers, std::span<const std::uint8_t> stack,
                                                  std::span<const Mapping> mappings, std::size_t max_frames = 64);
  /// The same with each frame's place on the stack.
  [[nodiscard]] std::vector<StackFrame> unwind_frames(const Registers& registers, std::span<const std::uint8_t> stack,
                                                      std::span<const Mapping> mappings, std::size_t max_frames = 64);

  /// The variable at `data` in `frame`, whose code is at module address `code` (a byte of the instruction that is
  /// executed, or of the call). nullopt where debug information does not say, and for what lies in registers.
  [[nodiscard]] std::optional<StackVariable> stack_variable(ModuleId module, std::uint64_t code,
                                                            const StackFrame& frame, std::uint64_t data);

  struct Missing {
    std::string path;
    std::string why;
    bool no_file = false;  // the module's own file is not here, or another one is in its place
  };
  /// Modules that were asked about and lack symbols or lines, with the reason and the remedy, one each.
  [[nodiscard]] std::vector<Missing> missing() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crosstalk::symbolizer
