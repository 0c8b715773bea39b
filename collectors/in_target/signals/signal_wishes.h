// SPDX-License-Identifier: Apache-2.0
// SIGTRAP is ours while we observe: the watchpoints'. The target may install a handler for it, ignore it or block every
// signal there is; it is told that it did, and it is observed all the same:
//   disposition   a wish for SIGTRAP is kept here and not installed (our handler chains to it);
//   masks         it is taken out of every mask on its way to the kernel, sa_mask included, and put back into every
//                 mask that is reported. A byte of thread-local storage remembers whether the target blocks it.
// A SIGTRAP that somebody sends, and that comes to a thread which has it blocked, is put back as it came and waits
// there, for sigwait or signalfd, say, as it would have (session/handlers.cpp). The clock's signal is one that no
// program can name (sys/clock_signal.h). Masks that libc keeps in the program's memory, for siglongjmp and
// setcontext, remember SIGTRAP in a word of their own (jumps.cpp). sigwait and signalfd on our signals are left alone.
// Everything here may be called in the target's signal handlers.
//
// A vfork child shares our memory and has dispositions and a mask of its own: its changes go to the kernel unfiltered
// and are not recorded as its parent's wish.
#pragma once

#include <signal.h>

#include <cstdint>

#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sys/kernel_signals.h"

namespace crosstalk::in_target {

using SignalHandler = void (*)(int);
using SetMask = RealFunction<int(int, const sigset_t*, sigset_t*)>;
extern constinit SetMask libc_pthread_sigmask;

/// The kernel knows 64 signals: the first word of a sigset_t, and all that libc reads or writes of one.
inline std::uint64_t& word_of(sigset_t& set) { return *reinterpret_cast<std::uint64_t*>(&set); }             // NOLINT
inline std::uint64_t word_of(const sigset_t& set) { return *reinterpret_cast<const std::uint64_t*>(&set); }  // NOLINT

/// Returns a bit for a signal that is filtered, else 0.
std::uint8_t filtered_bit(int signal_number);

/// Does the same as sigprocmask and pthread_sigmask; `real` is the one that was called.
int change_mask(SetMask& real, int how, const sigset_t* set, sigset_t* old_set);

/// Called before libc stores the calling thread's mask in `mask`: puts the bits that libc does not see into a spare
/// word.
void note_mask(sigset_t& mask);
/// Called before libc applies a mask that it has stored, or that the target has made.
void recall_mask(const sigset_t& mask);

/// A mask on its way to the kernel for the time of one call.
class PassingMask {
 public:
  explicit PassingMask(const sigset_t* asked);
  PassingMask(const PassingMask&) = delete;
  PassingMask& operator=(const PassingMask&) = delete;
  [[nodiscard]] const sigset_t* get() const { return mask_; }

 private:
  const sigset_t* mask_;
  sigset_t stripped_{};
};

/// As sigaction(2), for any signal.
int filtered_sigaction(int signal_number, const struct sigaction* action, struct sigaction* old_action);
/// As signal(2), with these flags, by filtered_sigaction().
SignalHandler filtered_signal(int signal_number, SignalHandler handler, int flags);

/// Looks up the functions that the queue and jump wrappers call, as prepare_signal_wrappers() does.
void prepare_queue_wrappers();
void prepare_jump_wrappers();
/// Looks up the functions that the wrappers call and that may be called in signal handlers.
void prepare_signal_wrappers();

/// While it lives, the kernel has the target's wishes for our signals: those it ignores are ignored, those it
/// blocks are blocked in the calling thread. An exec passes both on. The core must be quiet. Any process,
/// vfork children included.
class WishesInKernel {
 public:
  WishesInKernel();
  ~WishesInKernel();
  WishesInKernel(const WishesInKernel&) = delete;
  WishesInKernel& operator=(const WishesInKernel&) = delete;

 private:
  int ignored_ = 0;  // signal number; 0: untouched
  struct sigaction replaced_ = {};
  bool masked_ = false;
  sigset_t mask_{};
};

}  // namespace crosstalk::in_target
