// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/signals/handler_stubs.h"

#include <ucontext.h>

#include <atomic>
#include <cstddef>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/signals/own_signals.h"
#include "collectors/in_target/sys/signal_frame.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint32_t stub_count = 256;
constexpr std::uint64_t stub_bytes = 16;
constinit std::atomic<SignalHandler> handlers[stub_count] = {};

}  // namespace

extern "C" __attribute__((visibility("hidden"))) const char crosstalk_handler_stubs[];  // NOLINT: assembly, below

/// For the stubs: the handler of each.
extern "C" __attribute__((visibility("hidden"), used)) SignalHandler crosstalk_handler_of(std::uint32_t stub) {
  return handlers[stub].load(std::memory_order_acquire);
}

SignalHandler behind_stub(SignalHandler address) {
  const std::uint64_t offset =
      reinterpret_cast<std::uint64_t>(address) - reinterpret_cast<std::uint64_t>(&crosstalk_handler_stubs[0]);
  return offset < stub_count * stub_bytes ? crosstalk_handler_of(static_cast<std::uint32_t>(offset / stub_bytes))
                                          : address;
}

SignalHandler stub_for(SignalHandler handler) {
  if (handler == SIG_DFL || handler == SIG_IGN || session_config() == nullptr || !lends_stacks() ||
      behind_stub(handler) != handler) {
    return handler;
  }
  std::uint64_t address = reinterpret_cast<std::uint64_t>(&crosstalk_handler_stubs[0]);  // NOLINT: an address
  for (std::atomic<SignalHandler>& slot : handlers) {
    SignalHandler known = slot.load(std::memory_order_acquire);
    if (known == nullptr && slot.compare_exchange_strong(known, handler)) {
      known = handler;
    }
    if (known == handler) {
      return reinterpret_cast<SignalHandler>(address);  // NOLINT: an address
    }
    address += stub_bytes;
  }
  return handler;
}

void adopt_handlers() {
  constexpr int signal_limit = 65;
  for (int number = 1; number < signal_limit; ++number) {
    struct sigaction action {};
    if (real_sigaction(number, nullptr, &action) == 0 && (action.sa_flags & SA_ONSTACK) != 0 &&
        stub_for(action.sa_handler) != action.sa_handler) {
      action.sa_handler = stub_for(action.sa_handler);
      real_sigaction(number, &action, nullptr);
    }
  }
}

// The kernel enters a stub with the frame at rsp, the signal's number in edi, and rax 0. crosstalk_place_frame returns
// the frame's place from then on, and the handler.
//
// A moved frame returns to crosstalk_return_from_handler instead of libc's restorer: it has our alternate stack put
// into the context before the kernel reads it. Unwinders get the same description as from libc: the caller's registers
// are those of the context at rsp (the numbers are offsets in it), and this is a signal's frame. They look one byte
// before a return address, hence the nop.
asm(R"(
  .pushsection .text
  .balign 16
  .globl crosstalk_handler_stubs
  .hidden crosstalk_handler_stubs
crosstalk_handler_stubs:
  .set stub, 0
  .rept 256
  .balign 16
  endbr64
  movl $stub, %eax
  jmp crosstalk_enter_stub
  .set stub, stub + 1
  .endr
  .balign 16

  .type crosstalk_enter_stub, @function
crosstalk_enter_stub:
  .cfi_startproc
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushfq
  .cfi_adjust_cfa_offset 8
  pushfq
  .cfi_adjust_cfa_offset 8
  andl $0xfffbffff, (%rsp)   # our code does not expect alignment checks
  popfq
  .cfi_adjust_cfa_offset -8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movl %edi, %edx
  leaq 24(%rsp), %rdi
  movl %eax, %esi
  call crosstalk_place_frame
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popfq
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  movq %rax, %rsp
1:
  movq %rdx, %r11
  leaq 8(%rsp), %rdx
  leaq 312(%rsp), %rsi
  xorl %eax, %eax
  jmp *%r11
  .cfi_endproc
  .size crosstalk_enter_stub, .-crosstalk_enter_stub

  .globl crosstalk_jump_to_handler
  .hidden crosstalk_jump_to_handler
  .type crosstalk_jump_to_handler, @function
crosstalk_jump_to_handler:
  .cfi_startproc
  movq %rsi, %rsp
  jmp 1b
  .cfi_endproc
  .size crosstalk_jump_to_handler, .-crosstalk_jump_to_handler

  .globl crosstalk_return
  .hidden crosstalk_return
  .type crosstalk_return, @function
crosstalk_return:
  .cfi_startproc
  ret
  .cfi_endproc
  .size crosstalk_return, .-crosstalk_return

  .globl crosstalk_return_from_handler
  .hidden crosstalk_return_from_handler
  .type crosstalk_return_from_handler, @function
  .balign 16
  .cfi_startproc simple
  .cfi_signal_frame
  .cfi_escape 0x0f, 4, 0x77, 0xa0, 0x01, 0x06   # the caller's rsp
  .cfi_escape 0x10, 8, 2, 0x77, 0x28            # r8
  .cfi_escape 0x10, 9, 2, 0x77, 0x30
  .cfi_escape 0x10, 10, 2, 0x77, 0x38
  .cfi_escape 0x10, 11, 3, 0x77, 0xc0, 0x00
  .cfi_escape 0x10, 12, 3, 0x77, 0xc8, 0x00
  .cfi_escape 0x10, 13, 3, 0x77, 0xd0, 0x00
  .cfi_escape 0x10, 14, 3, 0x77, 0xd8, 0x00
  .cfi_escape 0x10, 15, 3, 0x77, 0xe0, 0x00
  .cfi_escape 0x10, 5, 3, 0x77, 0xe8, 0x00      # rdi
  .cfi_escape 0x10, 4, 3, 0x77, 0xf0, 0x00      # rsi
  .cfi_escape 0x10, 6, 3, 0x77, 0xf8, 0x00      # rbp
  .cfi_escape 0x10, 3, 3, 0x77, 0x80, 0x01      # rbx
  .cfi_escape 0x10, 1, 3, 0x77, 0x88, 0x01      # rdx
  .cfi_escape 0x10, 0, 3, 0x77, 0x90, 0x01      # rax
  .cfi_escape 0x10, 2, 3, 0x77, 0x98, 0x01      # rcx
  .cfi_escape 0x10, 7, 3, 0x77, 0xa0, 0x01      # rsp
  .cfi_escape 0x10, 16, 3, 0x77, 0xa8, 0x01     # rip
  nop
crosstalk_return_from_handler:
  pushfq                      # where the return address was
  andl $0xfffbffff, (%rsp)    # no alignment checks in our code
  popfq
  movq %rsp, %rdi
  call crosstalk_before_return
  movl $15, %eax
  syscall
  hlt
  .cfi_endproc
  .size crosstalk_return_from_handler, .-crosstalk_return_from_handler
  .popsection
)");
static_assert(offsetof(SignalFrame, context) == 8 && offsetof(SignalFrame, info) == 312);
static_assert(offsetof(KernelContext, registers) == 0x28 && REG_RIP == 16);

}  // namespace crosstalk::in_target
