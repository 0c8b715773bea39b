// SPDX-License-Identifier: Apache-2.0
// Rules to find a frame's caller at a code address, in a compact form that is computed once.
//
// They come from elfutils' reader of call-frame information, not from libunwind's remote accessors. libunwind keeps its
// rules by run-time address in an address space, so that another process, or the same one after a dlclose, cannot reuse
// them. Here they are kept by module address, for all processes and load addresses of a profile, which reduces the cost
// of a warm frame to about 40 ns. A profile may also name any file: libdw's reader is made for damaged ones, and its
// results are evaluated here with every access and every loop bounded.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/registers.h"
#include "symbolizer/elf/elf_file.h"

namespace crosstalk::symbolizer {

/// One operation of a DWARF expression.
struct Operation {
  std::uint8_t code = 0;  // DW_OP_*
  std::uint64_t first = 0, second = 0;
  std::uint64_t offset = 0;  // in the expression; branches are relative to it
};

/// The rule to recover a register of the caller. Registers without a rule are unchanged.
struct RegisterRule {
  enum class Kind : std::uint8_t {
    undefined,
    at_cfa,         // in memory at CFA + offset
    cfa_plus,       // is CFA + offset
    at_expression,  // in memory at the value of an expression
    expression,     // is the value of an expression
  };
  std::uint8_t reg = 0;  // DWARF number; 16: the return address
  Kind kind = Kind::undefined;
  std::int32_t offset = 0;
  std::vector<Operation> expression;
};

struct FrameRule {
  bool known = false;         // false: no call-frame information here
  bool signal_frame = false;  // the caller was interrupted, it did not call
  std::uint8_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  std::vector<Operation> cfa_expression;  // used when not empty
  std::vector<RegisterRule> registers;
};

/// The rules of one module. Bounded in memory; rules stay valid until the next call of at().
class FrameRules {
 public:
  /// Reads .eh_frame of `code`, then .debug_frame of `dwarf`. Either may be null; both must outlive the object.
  FrameRules(const ElfFile* code, Dwarf* dwarf);
  [[nodiscard]] const FrameRule& at(std::uint64_t address);

 private:
  struct EndCfi {
    void operator()(Dwarf_CFI* cfi) const { dwarf_cfi_end(cfi); }
  };
  [[nodiscard]] FrameRule read(std::uint64_t address);

  std::unique_ptr<Dwarf_CFI, EndCfi> eh_frame_;
  Dwarf_CFI* debug_frame_ = nullptr;  // owned by the Dwarf
  std::unordered_map<std::uint64_t, FrameRule> rules_;
};

}  // namespace crosstalk::symbolizer
