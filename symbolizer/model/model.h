// SPDX-License-Identifier: Apache-2.0
// The questions to the symbolizer and its answers.
//
// Addresses come in two kinds: a run-time address of a process (`Mapping`), and a module's own address as in its file's
// headers (module address = run time - bias).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/registers.h"

namespace crosstalk::symbolizer {

struct ModuleSpec {
  std::string path;      // empty for the vdso
  std::string build_id;  // lower-case hex, perhaps with zeros behind it or cut after 20 bytes; empty: unknown
  bool is_vdso = false;
  std::uint64_t content_hash = 0;  // base/file_content.h; 0: unknown
};

class ModuleCache;  // module_cache.h

struct Options {
  std::string sysroot;     // prefix under which module paths are looked for first
  bool debuginfod = true;  // ask the servers of DEBUGINFOD_URLS when that variable is set
  std::vector<std::string> debug_paths = {"/usr/lib/debug"};
  std::string foreign_architecture = {};  // of the recorded machine if not x86-64: files of this machine are not used
  std::string other_host = {};            // the recorded machine's name, if known to be another one
  /// Returns the recording's copy of a file, nullopt if it has none.
  std::function<std::optional<std::vector<std::uint8_t>>(const ModuleSpec&)> kept_copy = {};
  std::shared_ptr<ModuleCache> cache = {};  // keeps modules loaded for the next Symbolizer; null: none does
};

struct SourceLine {
  std::string file;        // as the compiler wrote it, made absolute with its directory; empty: unknown
  std::uint32_t line = 0;  // 0: unknown
  auto operator<=>(const SourceLine&) const = default;
};

/// One level of a code location; inlined calls give several.
struct Frame {
  std::string function;  // demangled; empty: unknown
  SourceLine source;
  bool inlined = false;  // this function was inlined into the next frame's
};

/// A part of a file that is loaded as a whole.
struct FileSegment {
  std::uint64_t begin = 0, end = 0;  // module addresses
  std::uint64_t file_offset = 0;     // of `begin`
};

/// The source location of a code address. frames[0] is the innermost (the inlined callee). Empty frames: unknown.
struct CodeLocation {
  std::vector<Frame> frames;
  std::uint64_t function_begin = 0;  // module address of the enclosing out-of-line function; 0: unknown
  std::uint64_t function_end = 0;
  bool has_lines = false;  // the module has line information for this address
};

/// A named object of static storage (global, or TLS within a module's TLS block).
struct DataSymbol {
  std::string name;         // demangled
  std::uint64_t begin = 0;  // module address, or offset in the TLS block
  std::uint64_t bytes = 0;
  SourceLine declared;
};

/// "member.inner[3]" for an offset in an object, from its debug type; empty path: no type known.
struct FieldPath {
  std::string path;
  std::string type;          // of the field
  std::uint64_t offset = 0;  // of the field in the object
  std::uint64_t bytes = 0;
};

/// The type of an allocation. `type` is the module's own number of it.
struct AllocatedType {
  std::uint32_t type = 0;
  std::string name;         // "Node", "long int", ...
  std::uint64_t bytes = 0;  // of one; never 0
};

/// A frame of an unwound stack. It covers [sp, end) of the stack, the return address included.
struct StackFrame {
  std::uint64_t address = 0;        // of the innermost frame where execution was, of others the return address
  std::uint64_t sp = 0;             // the stack pointer there
  std::uint64_t end = 0;            // the canonical frame address: the caller's stack pointer; 0: not known
  std::uint64_t frame_pointer = 0;  // rbp there; 0: not known
};

/// A local variable or parameter in its function's frame. `type` is the module's own number, as in AllocatedType.
struct StackVariable {
  std::string name;
  std::uint64_t begin = 0;  // run-time address
  AllocatedType type;
  SourceLine declared;
};

/// The memory operand of an instruction: address = segment + base + index * scale + displacement.
struct MemoryAccess {
  std::uint64_t instruction = 0;  // module address
  std::uint8_t instruction_bytes = 0;
  AccessKind kind = AccessKind::none;
  std::uint8_t width = 0;               // bytes; 0: unknown or variable (rep, xsave)
  std::optional<Register> base, index;  // Register::rip means the address after the instruction
  std::uint8_t scale = 1;
  std::int64_t displacement = 0;
  bool segment_fs = false;       // add the thread pointer
  bool overwrites_base = false;  // the instruction changes base or index, so the address cannot be
                                 // recomputed from registers after it
};

/// A function's machine code as text.
struct CodeListing {
  struct Instruction {
    std::uint64_t address = 0;  // module address
    std::uint8_t bytes = 0;
    std::string text;  // with the name of the function that it goes to or of the variable there, where they are known
  };
  std::vector<Instruction> instructions;  // by address; empty: see `missing`
  std::string missing;                    // why there are none, with a remedy
};

/// A natural loop of a function. Ids index FunctionLoops::loops.
struct Loop {
  std::uint32_t parent = no_parent;  // index of the loop around it
  std::uint32_t depth = 1;           // 1: outermost
  std::uint64_t header = 0;          // module address of the header block
  SourceLine begin, end;             // smallest and largest line of its own file among its instructions
  static constexpr std::uint32_t no_parent = UINT32_MAX;
};

struct FunctionLoops {
  std::uint64_t function_begin = 0;  // module address
  std::vector<Loop> loops;           // parents before children
  /// Index of the innermost loop that holds `address`; nothing outside all loops.
  [[nodiscard]] std::optional<std::uint32_t> innermost(std::uint64_t address) const;
  struct Range {
    std::uint64_t begin, end;
    std::uint32_t loop;
  };
  std::vector<Range> ranges;  // sorted, disjoint, innermost loop of each
};

/// The modules of one process at one time, for stack unwinding and address lookup.
struct Mapping {
  std::uint64_t begin = 0, end = 0, bias = 0;
  ModuleId module;
};

}  // namespace crosstalk::symbolizer
