// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/signal_registers.h"

#include <array>

namespace crosstalk::in_target {

Registers registers_of(const ucontext_t& context) {
  static constexpr std::array<int, register_count> order = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                            REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                            REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  Registers registers;
  for (std::size_t i = 0; i < register_count; ++i) {
    registers.value[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[order[i]]);
  }
  return registers;
}

}  // namespace crosstalk::in_target
