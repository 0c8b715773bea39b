// SPDX-License-Identifier: Apache-2.0
// A function call that a stopped thread is made to make, laid out on its stack as the kernel lays out the call of a
// signal handler: the function returns into libc's code for the end of a handler, and the kernel restores every
// register, the vector state and the signal mask from the frame. So the thread returns by itself, even if the process
// that stopped it is gone by then.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace crosstalk::injector {

/// A thread as ptrace(2) has it while it is stopped.
struct StoppedThread {
  user_regs_struct registers{};
  std::uint64_t mask = 0;               // of blocked signals
  std::vector<std::byte> vector_state;  // NT_X86_XSTATE
};

/// Returns the registers with which the thread goes on without the kernel's help: a system call that the stop has
/// interrupted before it did anything is begun again. Nothing: only the kernel can go on with it (it has noted the
/// remaining wait in the thread), so nothing may be called there.
[[nodiscard]] std::optional<user_regs_struct> resumed(const user_regs_struct& stopped);

struct CallFrame {
  std::uint64_t begin = 0;       // address of `bytes`
  std::vector<std::byte> bytes;  // to the stack's end of the frame
  user_regs_struct registers{};  // with which the call begins
};

/// The call function(text, more). `resumed`: of `thread`. `restorer`: the address of libc's code that ends a handler.
/// Fails for a vector state that cannot be laid out.
[[nodiscard]] Result<CallFrame> lay_out_call(const StoppedThread& thread, const user_regs_struct& resumed,
                                             std::uint64_t function, const std::string& text, std::uint64_t more,
                                             std::uint64_t restorer);

/// Bytes of an xsave area in the standard format with the components of `features` (bits as in XCR0) by CPUID, as the
/// kernel lays it out in signal frames; 0: not known.
[[nodiscard]] std::size_t vector_bytes(std::uint64_t features);

/// Returns the offset in `code` of libc's end of a handler, `mov $15, %rax; syscall`; nothing: it has none.
[[nodiscard]] std::optional<std::size_t> find_restorer(const unsigned char* code, std::size_t bytes);

}  // namespace crosstalk::injector
