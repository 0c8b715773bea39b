// SPDX-License-Identifier: Apache-2.0
// A seccomp filter would kill the target for a system call of ours: the core is told before one is applied.
// Filters come by prctl(), or (libseccomp) by syscall(), which some programs call often: its wrapper is some
// compares and a jump, without a frame, so that even syscall(SYS_vfork) returns to where it did. So may a signal be
// taken that libc would have refused, or told us of.
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdarg>

#include "collectors/in_target/interpose/core_interface.h"
#include "collectors/in_target/interpose/interpose.h"

namespace crosstalk::in_target {
namespace {
constinit RealFunction<int(int, unsigned long, unsigned long, unsigned long, unsigned long)> real_prctl("prctl");
}  // namespace

CROSSTALK_INTERPOSE(int, wrap_prctl, "prctl", (int option, ...));
int wrap_prctl(int option, ...) {
  unsigned long argument[4];
  va_list list;
  va_start(list, option);
  for (unsigned long& a : argument) {
    a = va_arg(list, unsigned long);  // as libc does: those that were not given are not looked at
  }
  va_end(list);
  if (option == PR_SET_SECCOMP) {
    const SavedErrno saved;
    on_seccomp();
  }
  return real_prctl(option, argument[0], argument[1], argument[2], argument[3]);
}

extern "C" {

/// libc's syscall(), once it is known.
__attribute__((visibility("hidden"))) constinit void* crosstalk_real_syscall = nullptr;

__attribute__((visibility("hidden"), used)) void* crosstalk_prepare_syscall(long number, long first,
                                                                            const void* second) {
  const SavedErrno saved;
  if (crosstalk_real_syscall == nullptr) {
    crosstalk_real_syscall = next_definition("syscall");
  }
  if ((number == SYS_seccomp && (first == SECCOMP_SET_MODE_STRICT || first == SECCOMP_SET_MODE_FILTER)) ||
      (number == SYS_prctl && first == PR_SET_SECCOMP)) {
    on_seccomp();
  }
  constexpr int clock_signal = 32;
  if (number == SYS_rt_sigaction && (first == SIGTRAP || first == clock_signal) && second != nullptr) {
    on_signal_taken(static_cast<int>(first));
  }
  return crosstalk_real_syscall;
}

}  // extern "C"

static_assert(SYS_seccomp == 317 && SYS_prctl == 157 && SYS_rt_sigaction == 13);

// syscall(number, six arguments): rdi, rsi, rdx, rcx, r8, r9 and one on the stack, all left as they are.
asm(R"(
  .pushsection .text
  .globl syscall
  .type syscall, @function
syscall:
  .cfi_startproc
  endbr64
  movq crosstalk_real_syscall(%rip), %rax
  cmpq $317, %rdi
  je 1f
  cmpq $157, %rdi
  je 1f
  cmpq $13, %rdi
  je 1f
  testq %rax, %rax
  je 1f
  jmp *%rax
1:
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  pushq %rdx
  .cfi_adjust_cfa_offset 8
  pushq %rcx
  .cfi_adjust_cfa_offset 8
  pushq %r8
  .cfi_adjust_cfa_offset 8
  pushq %r9
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call crosstalk_prepare_syscall
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %r9
  .cfi_adjust_cfa_offset -8
  popq %r8
  .cfi_adjust_cfa_offset -8
  popq %rcx
  .cfi_adjust_cfa_offset -8
  popq %rdx
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size syscall, .-syscall
  .popsection
)");

}  // namespace crosstalk::in_target
