// SPDX-License-Identifier: Apache-2.0
// Functions that keep a signal mask in the program's memory and put it in force later: sigsetjmp, siglongjmp,
// getcontext, setcontext, swapcontext. libc asks the kernel, which never has SIGTRAP in a mask while we observe; so the
// program's wish goes into the last word of the same sigset_t, which neither libc nor the kernel writes.
//
// The functions return to where their caller called them, some of them twice: each wrapper notes or recalls and jumps
// to libc's function with the stack and the arguments as they were.
#include <setjmp.h>
#include <ucontext.h>

#include <bit>
#include <cstdint>

#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/regions/marked_regions.h"
#include "collectors/in_target/signals/signal_wishes.h"
#include "collectors/in_target/sync/measured_wait.h"

namespace crosstalk::in_target {
namespace {

CROSSTALK_REAL constinit RealFunction<int(__jmp_buf_tag*, int)> libc_sigsetjmp("__sigsetjmp");
CROSSTALK_REAL constinit RealFunction<int(__jmp_buf_tag*)> libc_setjmp("setjmp");
CROSSTALK_REAL constinit RealFunction<void(__jmp_buf_tag*, int)> libc_siglongjmp("siglongjmp");
CROSSTALK_REAL constinit RealFunction<void(__jmp_buf_tag*, int)> libc_longjmp_chk("__longjmp_chk");
CROSSTALK_REAL constinit RealFunction<int(ucontext_t*)> libc_getcontext("getcontext");
CROSSTALK_REAL constinit RealFunction<int(const ucontext_t*)> libc_setcontext("setcontext");
CROSSTALK_REAL constinit RealFunction<int(ucontext_t*, const ucontext_t*)> libc_swapcontext("swapcontext");

void note(sigset_t& mask) {
  const SavedErrno saved;
  note_mask(mask);
}

/// The stack pointer in it, which glibc keeps from being read by accident (PTR_MANGLE).
std::uint64_t stack_pointer_of(const __jmp_buf_tag& buffer) {
  constexpr int place = 6;
  constexpr int turned = 17;
  std::uint64_t guard = 0;
  __asm__("movq %%fs:0x30, %0" : "=r"(guard));
  return std::rotr(static_cast<std::uint64_t>(buffer.__jmpbuf[place]), turned) ^ guard;
}

void recall(const __jmp_buf_tag& buffer) {
  forget_wait();
  end_regions_below(stack_pointer_of(buffer));
  if (buffer.__mask_was_saved != 0) {
    const SavedErrno saved;
    recall_mask(buffer.__saved_mask);
  }
}

}  // namespace

void prepare_jump_wrappers() {
  libc_sigsetjmp.prepare();
  libc_siglongjmp.prepare();
  libc_longjmp_chk.prepare();
  libc_getcontext.prepare();
  libc_setcontext.prepare();
  libc_swapcontext.prepare();
}

// Each returns the function to jump to.
extern "C" {

__attribute__((visibility("hidden"), used)) void* crosstalk_at_sigsetjmp(__jmp_buf_tag* buffer, int with_mask) {
  if (with_mask != 0) {
    note(buffer->__saved_mask);
  }
  return reinterpret_cast<void*>(libc_sigsetjmp.get());  // NOLINT: a function is an address, as below
}
__attribute__((visibility("hidden"), used)) void* crosstalk_at_setjmp(__jmp_buf_tag* buffer) {
  note(buffer->__saved_mask);
  return reinterpret_cast<void*>(libc_setjmp.get());  // NOLINT
}
__attribute__((visibility("hidden"), used)) void* crosstalk_at_siglongjmp(const __jmp_buf_tag* buffer) {
  recall(*buffer);
  return reinterpret_cast<void*>(libc_siglongjmp.get());  // NOLINT
}
__attribute__((visibility("hidden"), used)) void* crosstalk_at_longjmp_chk(const __jmp_buf_tag* buffer) {
  recall(*buffer);
  return reinterpret_cast<void*>(libc_longjmp_chk.get());  // NOLINT
}
__attribute__((visibility("hidden"), used)) void* crosstalk_at_getcontext(ucontext_t* context) {
  note(context->uc_sigmask);
  return reinterpret_cast<void*>(libc_getcontext.get());  // NOLINT
}
__attribute__((visibility("hidden"), used)) void* crosstalk_at_setcontext(const ucontext_t* context) {
  const SavedErrno saved;
  recall_mask(context->uc_sigmask);
  return reinterpret_cast<void*>(libc_setcontext.get());  // NOLINT
}
__attribute__((visibility("hidden"), used)) void* crosstalk_at_swapcontext(ucontext_t* left,
                                                                           const ucontext_t* entered) {
  const SavedErrno saved;
  note_mask(left->uc_sigmask);
  recall_mask(entered->uc_sigmask);
  return reinterpret_cast<void*>(libc_swapcontext.get());  // NOLINT
}

}  // extern "C"

// libc's siglongjmp, longjmp and _longjmp are one function.
asm(R"(
  .pushsection .text
  .macro pass_on name, first
  .globl \name
  .type \name, @function
\name:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call \first
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size \name, .-\name
  .endm
  pass_on __sigsetjmp, crosstalk_at_sigsetjmp
  pass_on setjmp, crosstalk_at_setjmp
  pass_on siglongjmp, crosstalk_at_siglongjmp
  pass_on longjmp, crosstalk_at_siglongjmp
  pass_on _longjmp, crosstalk_at_siglongjmp
  pass_on __longjmp_chk, crosstalk_at_longjmp_chk
  pass_on getcontext, crosstalk_at_getcontext
  pass_on setcontext, crosstalk_at_setcontext
  pass_on swapcontext, crosstalk_at_swapcontext
  .popsection
)");

}  // namespace crosstalk::in_target
