// SPDX-License-Identifier: Apache-2.0
// Records stacks at the places where threads make threads: a thread that shares its local variables with others and
// then waits for them is hardly ever sampled, and only a copy of its stack shows those variables.
#pragma once

#include "base/registers.h"

namespace crosstalk::in_target {

/// Returns the registers that calls preserve, rsp and rip, at the place where this is inlined: enough to unwind from
/// there.
__attribute__((always_inline)) inline Registers registers_here() {
  Registers here;
  asm volatile(
      "movq %%rbx, %0\n movq %%rbp, %1\n movq %%r12, %2\n movq %%r13, %3\n movq %%r14, %4\n movq %%r15, %5\n"
      "movq %%rsp, %6\n leaq 0(%%rip), %%rax\n movq %%rax, %7\n"
      : "=m"(here[Register::rbx]), "=m"(here[Register::rbp]), "=m"(here[Register::r12]), "=m"(here[Register::r13]),
        "=m"(here[Register::r14]), "=m"(here[Register::r15]), "=m"(here[Register::rsp]), "=m"(here[Register::rip])
      :
      : "rax");
  return here;
}

/// Records the stack of the calling thread, which makes a thread; `here`: its end. Once a second from one frame, and
/// while the process's allowance of stack copies lasts. Does nothing if the thread is not observed, or not on its own
/// stack. Not from handlers; allocates nothing, keeps errno.
void note_creation(const Registers& here);

}  // namespace crosstalk::in_target
