// SPDX-License-Identifier: Apache-2.0
// The kernel's rules for alternate stacks and for signal frames (x86-64), as pure functions. They give a frame's place
// if the program had the stacks that it asked for, and the answers that the program gets about them. Linux:
// kernel/signal.c (do_sigaltstack, sas_ss_flags), arch/x86/kernel/signal.c (get_sigframe), signal_64.c.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace crosstalk::in_target {

inline constexpr std::uint32_t stack_is_in_use = SS_ONSTACK;
inline constexpr std::uint32_t stack_is_disabled = SS_DISABLE;
inline constexpr std::uint32_t stack_disarms_itself = 1U << 31U;  // SS_AUTODISARM, linux/signal.h

/// A thread's alternate stack as the kernel keeps it (sas_ss_sp, _size and _flags): all 0 at first.
struct AlternateStack {
  std::uint64_t base = 0;
  std::uint64_t bytes = 0;  // 0: none
  std::uint32_t flags = 0;  // of the call that set it
};

/// True if a program with this stack pointer runs on the stack. False for a stack that disarms itself.
constexpr bool runs_on(const AlternateStack& stack, std::uint64_t stack_pointer) {
  return (stack.flags & stack_disarms_itself) == 0 && stack_pointer > stack.base &&
         stack_pointer - stack.base <= stack.bytes;
}

/// ss_flags as sigaltstack(2) reports them.
constexpr std::uint32_t reported_flags(const AlternateStack& stack, std::uint64_t stack_pointer) {
  const std::uint32_t kept = stack.flags & stack_disarms_itself;
  if (stack.bytes == 0) {
    return stack_is_disabled | kept;
  }
  return (runs_on(stack, stack_pointer) ? stack_is_in_use : 0U) | kept;
}

/// Returns the alternate stack that the kernel keeps when it accepts `asked`.
constexpr AlternateStack accepted(const AlternateStack& asked) {
  if ((asked.flags & ~stack_disarms_itself) == stack_is_disabled) {
    return {0, 0, asked.flags};
  }
  return asked;
}

/// After the return from a handler whose context says `asked`, to code with this stack pointer. Errors are ignored.
constexpr AlternateStack after_return(const AlternateStack& now, const AlternateStack& asked,
                                      std::uint64_t stack_pointer) {
  constexpr std::uint64_t least_bytes = 2048;  // the kernel's MINSIGSTKSZ
  const std::uint32_t mode = asked.flags & ~stack_disarms_itself;
  const bool known_mode = mode == stack_is_disabled || mode == stack_is_in_use || mode == 0;
  if (runs_on(now, stack_pointer) || !known_mode || (mode != stack_is_disabled && asked.bytes < least_bytes)) {
    return now;
  }
  return accepted(asked);
}

// ---------------------------------------------------------------------------------- the frame in memory

/// `struct ucontext` of the kernel; glibc's ucontext_t begins like it and is longer.
struct KernelContext {
  std::uint64_t flags;
  std::uint64_t link;
  std::uint64_t stack_base;
  std::uint32_t stack_flags;
  std::uint32_t stack_padding;
  std::uint64_t stack_bytes;
  std::uint64_t registers[23];  // as REG_R8, ... name them
  std::uint64_t vector_state;   // address of the xsave area, or 0
  std::uint64_t reserved[8];
  std::uint64_t mask;
};
static_assert(offsetof(KernelContext, registers) == offsetof(ucontext_t, uc_mcontext.gregs));
static_assert(offsetof(KernelContext, vector_state) == offsetof(ucontext_t, uc_mcontext.fpregs));
static_assert(offsetof(KernelContext, mask) == offsetof(ucontext_t, uc_sigmask));
static_assert(sizeof(KernelContext) == 304);

/// `struct rt_sigframe` of the kernel, and behind it a word of ours in those that we have placed.
struct SignalFrame {
  std::uint64_t return_address;
  KernelContext context;
  siginfo_t info;
  std::uint64_t owner;  // of placed frames only
};
inline constexpr std::size_t kernel_frame_bytes = offsetof(SignalFrame, owner);
static_assert(kernel_frame_bytes == 440);

/// Returns the bytes of the saved vector state: the kernel's note in the words that the processor leaves to software
/// (struct _fpx_sw_bytes), or the 512 bytes of FXSAVE.
inline std::uint64_t vector_state_bytes(const void* state) {
  constexpr std::size_t noted_at = 464;
  constexpr std::uint32_t magic = 0x46505853;  // FP_XSTATE_MAGIC1
  constexpr std::uint64_t plain_bytes = 512;
  std::uint32_t noted[2];
  std::memcpy(noted, static_cast<const char*>(state) + noted_at, sizeof noted);
  return noted[0] == magic && noted[1] > plain_bytes ? noted[1] : plain_bytes;
}

struct FramePlace {
  std::uint64_t frame = 0;
  std::uint64_t vector_state = 0;
  bool fits = false;  // else the kernel sends SIGSEGV instead
};

/// Returns the place where the kernel would build the frame. `wants_alternate`: the handler has SA_ONSTACK.
constexpr FramePlace frame_place(const AlternateStack& stack, bool wants_alternate, std::uint64_t interrupted,
                                 std::uint64_t vector_bytes) {
  constexpr std::uint64_t red_zone = 128;
  constexpr std::uint64_t vector_alignment = 64;
  constexpr std::uint64_t alignment = 16;
  const bool nested = stack.bytes != 0 && runs_on(stack, interrupted);
  const bool enters = wants_alternate && stack.bytes != 0 && !nested;
  const std::uint64_t top = enters ? stack.base + stack.bytes : interrupted - red_zone;
  FramePlace place;
  place.vector_state = (top - vector_bytes) & ~(vector_alignment - 1);
  // A return address lies there, so that the handler finds the alignment of any called function.
  place.frame = ((place.vector_state - sizeof(SignalFrame)) & ~(alignment - 1)) - sizeof(std::uint64_t);
  const bool within = place.frame > stack.base && place.frame - stack.base <= stack.bytes;
  place.fits = within || !(nested || enters);
  return place;
}

}  // namespace crosstalk::in_target
