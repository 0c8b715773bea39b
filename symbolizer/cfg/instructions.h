// SPDX-License-Identifier: Apache-2.0
// Effects of one x86-64 instruction on memory and on control flow. Pure functions of bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "symbolizer/model/model.h"

namespace crosstalk::symbolizer {

enum class Flow : std::uint8_t {
  next,           // goes on behind it (system calls too)
  branch,         // to `target` or on
  jump,           // to `target`
  indirect_jump,  // to where a register or memory says
  call,           // on, once the callee returns; `target` is the callee or 0
  stop,           // return, trap, halt
};

struct Instruction {
  std::uint64_t address = 0;
  std::uint64_t target = 0;  // of a branch, jump or direct call; else 0
  std::uint8_t bytes = 0;
  Flow flow = Flow::next;
  bool padding = false;  // nop or int3: what compilers put between functions and blocks
  [[nodiscard]] std::uint64_t end() const { return address + bytes; }
};

/// Decodes the instruction at the start of `code`, which lies at `address`; nullopt for no valid one.
[[nodiscard]] std::optional<Instruction> decode(std::span<const std::uint8_t> code, std::uint64_t address);

/// The memory access of the instruction at the start of `code`. Explicit operands come before implied ones: `push
/// (%rax)` is the load of (%rax). lea, nop, prefetches and cache-control instructions access nothing. An instruction
/// with two implied operands (movs) gives the one that it stores to. If the address cannot be computed from integer
/// registers (gather and scatter, gs, 32-bit addressing), `overwrites_base` is set and the width is 0. push and call
/// have base rsp and a negative displacement, so the registers before the instruction give the address.
[[nodiscard]] std::optional<MemoryAccess> memory_access(std::span<const std::uint8_t> code, std::uint64_t address);

/// Operands of the instructions of a jump-table dispatch; absent for other instructions.
struct Operands {
  std::optional<std::uint64_t> lea_address;     // lea disp(%rip), reg: the address
  std::optional<std::uint64_t> compare_bound;   // cmp $imm, x: the immediate
  std::optional<std::uint64_t> table_address;   // jmp *disp(,reg,8) or mov disp(,reg,8): the displacement
  std::optional<std::uint8_t> wide_load_scale;  // movslq (base,index,4): 4
};
[[nodiscard]] Operands table_operands(std::span<const std::uint8_t> code, std::uint64_t address);

}  // namespace crosstalk::symbolizer
