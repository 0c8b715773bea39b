// SPDX-License-Identifier: Apache-2.0
// The core's interface to the functions that stand in for libc's: they ask if it observes, and announce the program's
// next actions. Implemented by core/ and session/. All of it may be called before the process is attached, or when it
// never is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "profile/arena.h"
#include "profile/records.h"

namespace crosstalk::in_target {

/// Attached and running. Cheap (a relaxed load), any context.
bool observing();

/// The session's settings; null when this process (or the one it was forked from) never attached. Stays
/// non-null in a forked child that is not followed: exec has to clean its environment.
const profile::SessionConfig* session_config();

/// True if threads may have stacks of ours as their alternate stacks, and the target's handlers stubs. False if all is
/// put back while the process goes on.
bool lends_stacks();

/// The process that attached; 0: none. In a vfork child, and in a forked child that is not followed, it
/// differs from getpid().
std::int32_t attached_pid();

/// Appends one record to the calling thread's ring; `size` and `tail` of the header are filled in, the rest
/// is the caller's. False: no ring, or full (counted). Normal or handler context.
bool emit(const void* fixed, std::size_t fixed_bytes, const void* tail, std::size_t tail_bytes);

/// The calling process is about to exec: emits process_end(exec = 1) and quiesces (no clock, no watchpoint
/// is live in any thread when it returns). Called in the attached process only, never in a vfork child.
void before_exec();
/// The exec failed: observe again.
void exec_failed();

/// A program that goes unobserved.
struct UnobservedProgram {
  profile::Unobserved reason{};
  char detail[sizeof profile::UnobservedNotice::detail] = {};
  char program[sizeof profile::UnobservedNotice::program] = {};
};

/// Tells the recorder of a program that process `pid` executes, or, `withdrawn`, that it could not execute it after
/// all. Any process that has the arena mapped, vfork children too.
void tell_unobserved(const UnobservedProgram& program, std::int32_t pid, bool withdrawn);

/// True if the limits of the calling process leave room for us in a program that it executes. The loader alone may need
/// more of a small stack than there is. If not, counts the program as one that had no room. By system calls.
bool next_program_has_room();

/// The calling process has confined itself and the programs that it will execute by on_seccomp().
bool confined();
/// Our own system calls are harmless: the process is observed, or just of another pid namespace. False once we have
/// stepped aside from it, for any reason.
bool may_make_system_calls();

/// A seccomp filter is about to be applied to the calling thread or process: after this call no handler
/// may make a system call that the target does not make itself.
void on_seccomp();

/// The calling process is about to be traced: when this returns, no signal of ours comes to any of its threads.
void on_traced();

/// System calls of the calling thread are about to be handed to the target itself: when this returns, none is ours.
void on_user_dispatch();

/// The target is about to open a breakpoint: when this returns, none of the debug registers is ours, in any thread.
void on_breakpoint_wanted();

/// The calling thread, or (`new_thread`) one that it is about to make, will have descriptors of its own: when this
/// returns, none of ours is in use, unless there is no other thread.
void on_own_descriptors(bool new_thread = false);

/// The target's limit of descriptors has been raised, and is held: when this returns, none of ours is below it.
void on_limit_raised();

/// Called before the target unmaps a range. When this returns, no code of ours is, or will be, in the kernel's pages of
/// fast clocks (the vdso), if the range contains them.
void on_unmap(std::uint64_t begin, std::uint64_t bytes);

/// The calling thread is about to block the trap signal in earnest: when this returns, it is not watched.
void on_trap_blocked();

/// The target has been refused a timer or a queued signal for the limit of those. True: ours are gone, it may try
/// again.
bool on_signal_limit();

/// Called before the target takes a signal of ours by the system call itself: when this returns, we do not use it any
/// more.
void on_signal_taken(int signal_number);

/// Modules that were not there before have been reported. False: the loader is still working at one, and a look in a
/// while is wanted. Within on_module_change().
bool on_new_modules();

}  // namespace crosstalk::in_target
