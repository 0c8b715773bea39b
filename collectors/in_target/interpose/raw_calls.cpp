// SPDX-License-Identifier: Apache-2.0
// Interposes prctl() and syscall(), and tells the core before requests that conflict with our handlers or resources.
// syscall() is called often by some programs: its wrapper is a look-up in a table and a jump, without a frame, so that
// even syscall(SYS_vfork) returns to where it did.
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/perf_event.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cstdarg>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sync/measured_wait.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

CROSSTALK_REAL constinit RealFunction<int(int, unsigned long, unsigned long, unsigned long, unsigned long)> real_prctl(
    "prctl");

// By number, as not all system headers have them.
constexpr int futex_waitv_call = 449;  // Linux 5.16
constexpr int futex_wait_call = 455;   // Linux 6.7
constexpr long lock_pi_2 = 13;         // Linux 5.14

#ifndef PR_SET_SYSCALL_USER_DISPATCH  // Linux 5.11
constexpr int PR_SET_SYSCALL_USER_DISPATCH = 59;
#endif

/// A filter would kill the target for a system call of ours, dispatch hand it to the target, and a handler that reads
/// the time stamp would fault.
void before_prctl(long option, long argument) {
  constexpr long dispatch_on = 1;  // PR_SYS_DISPATCH_ON
  if (option == PR_SET_SECCOMP) {
    on_seccomp();
  } else if (option == PR_SET_SYSCALL_USER_DISPATCH && argument == dispatch_on) {
    on_user_dispatch();
  } else if (option == PR_SET_TSC && argument == PR_TSC_SIGSEGV) {
    vdso_clock_gettime.store(nullptr, std::memory_order_relaxed);
  }
}

/// True if the call opens a breakpoint. The attributes are at the target's address, which may be unmapped.
bool asks_for_breakpoint(long attributes) {
  std::uint32_t type = 0;
  static_assert(offsetof(perf_event_attr, type) == 0 && sizeof type == sizeof perf_event_attr::type);
  return may_make_system_calls() &&
         read_memory(static_cast<std::uint64_t>(attributes), &type, sizeof type, kernel_process_id()) == sizeof type &&
         type == PERF_TYPE_BREAKPOINT;
}

}  // namespace

CROSSTALK_INTERPOSE(int, wrap_prctl, "prctl", (int option, ...));
int wrap_prctl(int option, ...) {
  unsigned long argument[4];
  va_list list;
  va_start(list, option);
  for (unsigned long& a : argument) {
    a = va_arg(list, unsigned long);  // as libc does: arguments that were not given are ignored
  }
  va_end(list);
  {
    const SavedErrno saved;
    before_prctl(option, static_cast<long>(argument[0]));
  }
  return real_prctl(option, argument[0], argument[1], argument[2], argument[3]);
}

CROSSTALK_INTERPOSE(int, wrap_mlockall, "mlockall", (int flags));  // memory_locks.cpp

namespace {
CROSSTALK_REAL constinit RealFunction<long(long)> libc_syscall{"syscall"};
}  // namespace

extern "C" {

/// libc's syscall(), once it is known.
__attribute__((visibility("hidden"))) constinit void* crosstalk_real_syscall = nullptr;

constexpr std::uint64_t bit_of(long number, std::size_t word) {
  return static_cast<std::size_t>(number) / 64 == word ? std::uint64_t{1} << static_cast<unsigned>(number % 64) : 0;
}
constexpr std::uint64_t noted(std::size_t word) {
  std::uint64_t bits = 0;
  for (const long number :
       {SYS_munmap, SYS_rt_sigaction, SYS_mremap, SYS_mlockall, SYS_prctl, SYS_unshare, SYS_perf_event_open,
        SYS_seccomp, SYS_close_range, SYS_futex, futex_waitv_call, futex_wait_call}) {
    bits |= bit_of(number, word);
  }
  return bits;
}
/// A bit for each system call that may concern the core.
__attribute__((visibility("hidden"))) extern const std::uint64_t crosstalk_noted_calls[8];
const std::uint64_t crosstalk_noted_calls[8] = {noted(0), noted(1), noted(2), noted(3),
                                                noted(4), noted(5), noted(6), noted(7)};

long crosstalk_lock_all(long /*number*/, long flags) { return wrap_mlockall(static_cast<int>(flags)); }

/// Waits by futex, as C++20's atomics, latches, barriers and semaphores and programs' own locks do.
__attribute__((visibility("hidden"))) long crosstalk_wait_at_futex(long number, long word, long operation, long value,
                                                                   long timeout, long word_too, long value_too) {
  const MeasuredWait wait(profile::WaitKind::futex, __builtin_return_address(0), __builtin_frame_address(0));
  const auto call = reinterpret_cast<long (*)(long, ...)>(crosstalk_real_syscall);  // NOLINT: a symbol is an address
  return call(number, word, operation, value, timeout, word_too, value_too);
}

bool waits_at_futex(long operation) {
  const long command = operation & ~long{FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME};
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET || command == FUTEX_WAIT_REQUEUE_PI ||
         command == FUTEX_LOCK_PI || command == lock_pi_2;
}

/// Returns the function to jump to.
__attribute__((visibility("hidden"), used)) void* crosstalk_prepare_syscall(long number, long first, long second,
                                                                            long third) {
  const SavedErrno saved;
  if (crosstalk_real_syscall == nullptr) {
    crosstalk_real_syscall = libc_syscall.address();
  }
  constexpr int clock_signal = 32;
  switch (number) {
    case SYS_seccomp:
      if (first == SECCOMP_SET_MODE_STRICT || first == SECCOMP_SET_MODE_FILTER) {
        on_seccomp();
      }
      break;
    case SYS_prctl:
      before_prctl(first, second);
      break;
    case SYS_rt_sigaction:
      if ((first == SIGTRAP || first == clock_signal) && second != 0) {
        on_signal_taken(static_cast<int>(first));
      }
      break;
    case SYS_perf_event_open:
      if (asks_for_breakpoint(first)) {
        on_breakpoint_wanted();
      }
      break;
    case SYS_unshare:
      if ((first & CLONE_FILES) != 0) {
        on_own_descriptors();
      }
      break;
    case SYS_close_range:
      if ((static_cast<unsigned long>(third) & CLOSE_RANGE_UNSHARE) != 0) {
        on_own_descriptors();
      }
      break;
    case SYS_munmap:
    case SYS_mremap:
      on_unmap(static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(second));
      break;
    case SYS_futex:
    case futex_waitv_call:
    case futex_wait_call:
      if ((number != SYS_futex || waits_at_futex(second)) && measures_waits() && lends_stacks()) {
        return reinterpret_cast<void*>(&crosstalk_wait_at_futex);  // NOLINT
      }
      break;
    case SYS_mlockall:
      return reinterpret_cast<void*>(&crosstalk_lock_all);  // NOLINT: a function is an address
    default:
      break;
  }
  return crosstalk_real_syscall;
}

}  // extern "C"

// syscall(number, six arguments): rdi, rsi, rdx, rcx, r8, r9 and one on the stack, all left as they are.
asm(R"(
  .pushsection .text
  .globl syscall
  .type syscall, @function
syscall:
  .cfi_startproc
  endbr64
  movq crosstalk_real_syscall(%rip), %rax
  cmpq $511, %rdi
  ja 2f
  btq %rdi, crosstalk_noted_calls(%rip)
  jc 1f
2:
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
