// SPDX-License-Identifier: Apache-2.0
// The kernel's numbers of the x86-64 registers (enum perf_event_x86_regs), in which it delivers and masks them, and
// ours.
#pragma once

#include <asm/perf_regs.h>

#include <array>
#include <optional>

#include "base/registers.h"

namespace crosstalk::collectors {

struct PerfRegister {
  unsigned number;  ///< the kernel's
  Register ours;
};

/// All of ours, in the order in which the kernel delivers them. The flags (PERF_REG_X86_FLAGS) are not among ours.
inline constexpr std::array<PerfRegister, register_count> perf_registers = {{
    {PERF_REG_X86_AX, Register::rax},
    {PERF_REG_X86_BX, Register::rbx},
    {PERF_REG_X86_CX, Register::rcx},
    {PERF_REG_X86_DX, Register::rdx},
    {PERF_REG_X86_SI, Register::rsi},
    {PERF_REG_X86_DI, Register::rdi},
    {PERF_REG_X86_BP, Register::rbp},
    {PERF_REG_X86_SP, Register::rsp},
    {PERF_REG_X86_IP, Register::rip},
    {PERF_REG_X86_R8, Register::r8},
    {PERF_REG_X86_R9, Register::r9},
    {PERF_REG_X86_R10, Register::r10},
    {PERF_REG_X86_R11, Register::r11},
    {PERF_REG_X86_R12, Register::r12},
    {PERF_REG_X86_R13, Register::r13},
    {PERF_REG_X86_R14, Register::r14},
    {PERF_REG_X86_R15, Register::r15},
}};

[[nodiscard]] constexpr std::optional<Register> register_of(unsigned number) {
  for (const PerfRegister& each : perf_registers) {
    if (each.number == number) {
      return each.ours;
    }
  }
  return std::nullopt;
}

}  // namespace crosstalk::collectors
