// SPDX-License-Identifier: Apache-2.0
// The interface between the core (attach, threads, clocks, watch unit) and the interposed functions (heap, exec,
// signals, modules). "Core:" is implemented by the core and called by the interposition; "Interposition:" the other way
// round. All of it may be called before the core has attached, or when it never does.
#pragma once

#include <signal.h>

#include <cstddef>
#include <cstdint>

#include "profile/arena.h"
#include "profile/records.h"

namespace crosstalk::in_target {

// ------------------------------------------------------------------------------------------------ Core

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

/// The target is about to take a signal of ours by the system call itself: when this returns, we have no use for it.
void on_signal_taken(int signal_number);

/// Modules that were not there before have been reported. False: the loader is still working at one, and a look in a
/// while is wanted. Within on_module_change().
bool on_new_modules();

// --------------------------------------------------------------------------------------- Interposition

// Blocks of memory (block_table.cpp). Tracking is on from the first instruction, so that blocks allocated
// before the core attached are known; the core then says whether, and from which size on, it goes on.

struct BlockInfo {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t site = 0;  // return address of the allocating call
  profile::BlockKind kind = profile::BlockKind::heap;
  bool first_report = false;
};

/// The newest tracked block that contains `address`. `first_report` is true for exactly one caller a block.
/// Lock-free, any context. False: none is known (which does not mean that there is none).
bool find_block(std::uint64_t address, BlockInfo& out);
/// Core calls: once it knows; `on = false` when it does not attach or steps aside.
void track_blocks(bool on, std::uint64_t threshold_bytes);
/// Forgets all blocks: memory that was allocated while nothing was recorded may have reused their places. Normal
/// context.
void forget_blocks();
/// Core calls in a forked child that it goes on observing: blocks count as unreported again.
void blocks_after_fork();

// Modules (modules.cpp). dlopen is not interposed (see modules.cpp for why); new modules are found by
// looking.

/// Emits ModuleLoad and ModuleUnload for changes since the last call; cheap if there are none. Normal context only;
/// does nothing while another thread is in it. Core calls: at attach (the first call reports every module), and at
/// exit.
void on_module_change();
/// The next samples see to it that some more looks are taken, though nothing has changed. Any context.
void look_for_modules_again();
/// A thread starts with `routine`: the same, unless that is in a known module and a look is not long ago.
void on_thread_in_module(std::uint64_t routine);
/// Core calls for each sampled or trapped instruction pointer: one that lies in no known module makes the
/// next interposed call (malloc, say) look for new modules. Any context; some ten nanoseconds.
void note_code_address(std::uint64_t ip);

// Exec and spawn (exec.cpp).

/// Core calls after it attached, before main: copies our LD_PRELOAD entry and the arena's name, so that children get
/// them whatever the target does to its environment. With follow_children == 0 takes both out of the environment, so
/// that children of system() and popen() are not observed either.
void remember_environment();
/// Core calls once the process is observed: the target does not see what makes it so (child_environment.h).
void hide_environment();
/// Core calls in a forked child, observed or not.
void environment_after_fork();
/// Looks up functions that may be called in a vfork child.
void prepare_exec_wrappers();

// Modules that were loaded before this library (got_patches.cpp).

enum class Patched {
  all,
  not_yet,  // but for modules that the loader is still working at
  not_all,  // there are more places than are provided for
};
/// Makes modules call the functions that we stand in for: changes entries of their tables of addresses (GOT) that
/// contain the real function's address, or none yet. Normal context.
Patched patch_modules();
/// From then on: the same for those that have been loaded since. Nothing where patch_modules() was not called.
Patched patch_new_modules();
/// Puts back entries that are still as we changed them. Normal context.
void unpatch_modules();
/// Does the same in a forked child, which has no other threads, and whose copy of the loader's lock may be taken for
/// ever.
void unpatch_modules_in_child();

// Signals (signals.cpp). After own_signals() the target neither replaces our handler nor blocks our signal, and sees
// its own wishes when it asks.

/// Core calls before it installs its handlers (the present one is the target's wish).
void own_signals(int trap_signal);
/// Called for a foreign trap signal in the calling thread. Returns true if the target has blocked it there. Then blocks
/// it in the thread's mask of `context` (a ucontext_t), and leaves masks alone in the whole process. In our handler
/// only.
bool block_trap_as_wished(void* context);
/// The target's wish for the trap signal is in force again, and nothing is filtered: the handler is its own.
void disown_signals();
/// Leaves the target's masks alone: a thread that blocks the trap signal is not watched meanwhile.
void leave_masks_alone();
/// Returns the target's action for the trap signal: never null, SIG_DFL if it never set one. Any context.
const struct sigaction* target_trap_action();
/// libc's functions, unfiltered, for the core. As sigaction(2) and pthread_sigmask(3).
int real_sigaction(int signal_number, const struct sigaction* action, struct sigaction* old_action);
int real_sigmask(int how, const sigset_t* set, sigset_t* old_set);
/// Core calls on each thread it is about to observe: our signals, if blocked, are unblocked and remembered
/// as blocked by the target.
void adopt_thread_mask();
/// A thread inherits its creator's mask: core takes this in the creator (pthread_create) and hands it to
/// inherit_mask_shadow() in the new thread. Opaque bits.
std::uint8_t mask_shadow();
void inherit_mask_shadow(std::uint8_t bits);

}  // namespace crosstalk::in_target
