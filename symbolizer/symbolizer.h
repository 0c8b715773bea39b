// SPDX-License-Identifier: Apache-2.0
// Resolves code and data addresses: functions, lines, inlining, data symbols, struct fields, instructions, loops and
// call stacks. Independent of profiles. Not thread-safe: use one Symbolizer for each thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/registers.h"
#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

class LoopAnatomy;  // loop_anatomy.h

class Symbolizer {
 public:
  explicit Symbolizer(Options options = {});
  ~Symbolizer();
  Symbolizer(Symbolizer&&) noexcept;

  /// Registers a module (once for equal path, build id and contents). Never fails: the module of a missing or damaged
  /// file answers nothing; see missing().
  ModuleId add_module(const ModuleSpec& spec);
  /// Reads the files that just-in-time compilers wrote for a process, if present: /tmp/perf-PID.map, and jit-PID.dump
  /// at `jit_dump` or in the compilers' places: /tmp, the current folder, .debug/jit/* of JITDUMPDIR and of HOME. Looks
  /// below sysroot first.
  void add_jit_symbols(std::int32_t pid, const std::string& jit_dump = {});
  /// The compiled function at a run-time address of a process at a time (jit_dump.h).
  [[nodiscard]] std::optional<Frame> jit_frame(std::int32_t pid, std::uint64_t address, std::uint64_t time_ns) const;

  [[nodiscard]] const CodeLocation& locate(ModuleId module, std::uint64_t address);  // cached
  [[nodiscard]] std::optional<DataSymbol> data_symbol(ModuleId module, std::uint64_t address);
  [[nodiscard]] std::optional<DataSymbol> tls_symbol(ModuleId module, std::uint64_t tls_block_offset);
  /// The field at `offset` in the global or TLS object `symbol`.
  [[nodiscard]] std::optional<FieldPath> field(ModuleId module, const DataSymbol& symbol, std::uint64_t offset);

  /// The type that the call at `address` (a byte of the call instruction) allocates, if debug information tells
  /// (dwarf/allocated_types.h). The element type for arrays.
  [[nodiscard]] std::optional<AllocatedType> allocated_type(ModuleId module, std::uint64_t address);
  /// The field at `offset` in an object of a type from allocated_type().
  [[nodiscard]] std::optional<FieldPath> field_of(ModuleId module, std::uint32_t type, std::uint64_t offset);

  /// The instruction that ends at `address` (found from the function's control flow), if it touches memory.
  [[nodiscard]] std::optional<MemoryAccess> access_before(ModuleId module, std::uint64_t address);
  [[nodiscard]] std::optional<MemoryAccess> access_at(ModuleId module, std::uint64_t address);
  /// Loops of the function that holds `address`; null if the function or its code is unknown. Cached.
  [[nodiscard]] const FunctionLoops* loops(ModuleId module, std::uint64_t address);

  /// The loops of that function as machine code, numbered as in loops(); null likewise. Lives as long as this.
  [[nodiscard]] LoopAnatomy* loop_anatomy(ModuleId module, std::uint64_t address);

  /// The module address of an offset in the module's file; nullopt: the file is not known.
  [[nodiscard]] std::optional<std::uint64_t> address_of(ModuleId module, std::uint64_t file_offset);

  /// The loaded segment of the module's file that holds `address`; nullopt: the file is not known.
  [[nodiscard]] std::optional<FileSegment> segment_at(ModuleId module, std::uint64_t address);

  /// The module's bytes from `address` on, as in its file; empty if they are not known. Lives as long as this.
  [[nodiscard]] std::span<const std::uint8_t> bytes_at(ModuleId module, std::uint64_t address);

  /// The machine code of the function that holds `address`, as text.
  [[nodiscard]] CodeListing listing(ModuleId module, std::uint64_t address);

  /// Return addresses of the callers of registers[rip], innermost first, with registers[rip] itself as element 0. Uses
  /// .eh_frame/.debug_frame of the mapped modules, then the frame pointer. Stops at the end of `stack` (memory from
  /// registers[rsp] upward), at `max_frames`, or if nothing leads further.
  [[nodiscard]] std::vector<std::uint64_t> unwind(const Registers& registers, std::span<const std::uint8_t> stack,
                                                  std::span<const Mapping> mappings, std::size_t max_frames = 64);
  /// The same with each frame's position on the stack.
  [[nodiscard]] std::vector<StackFrame> unwind_frames(const Registers& registers, std::span<const std::uint8_t> stack,
                                                      std::span<const Mapping> mappings, std::size_t max_frames = 64);

  /// The variable at `data` in `frame`, whose code is at module address `code` (a byte of the executing instruction, or
  /// of the call). nullopt if debug information does not tell, or the variable lies in registers.
  [[nodiscard]] std::optional<StackVariable> stack_variable(ModuleId module, std::uint64_t code,
                                                            const StackFrame& frame, std::uint64_t data);

  struct Missing {
    std::string path;
    std::string why;
    bool no_file = false;  // the module's own file is not here, or another one is in its place
  };
  /// Modules with missing symbols or lines that were requested, with the reason and the remedy, one entry each.
  [[nodiscard]] std::vector<Missing> missing() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crosstalk::symbolizer
