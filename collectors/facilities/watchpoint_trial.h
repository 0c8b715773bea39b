// SPDX-License-Identifier: Apache-2.0
// The self-test of watchpoints. They can be opened on machines where they never fire, and some fire for some kinds of
// access only. So each kind is tried, on words of a child process: a trap or a hang there harms nobody. The test takes
// less than a millisecond, and runs for each recording: a virtual machine may have moved since.
#pragma once

#include <cstdint>

#include "profile/watch_trial.h"

namespace crosstalk::collectors {

/// Accesses of one kind, and how many of them were reported.
struct TriedAccesses {
  std::uint32_t made = 0, reported = 0;
};

/// The child's findings so far, in memory that both processes share.
struct TrialFindings {
  enum class Stage : std::uint32_t { begun, own_accesses, other_thread, signals, tested };
  Stage stage = Stage::begun;  // the one that has begun latest
  int open_error = 0;          // errno of the first watchpoint; 0: it was opened
  int thread_error = 0;        // errno of making a thread
  int signal_error = 0;        // errno of a watchpoint that sends signals
  TriedAccesses store, load, locked;
  TriedAccesses other_thread, signal;  // as many of each kind
  std::uint32_t false_reports = 0;     // of words that were left alone
  bool blocked_signal_waits = false;   // a trap's signal that was blocked stays pending
};

/// How the child ended.
struct TrialEnd {
  int fork_error = 0;  // errno: there was none
  int signal = 0;      // that killed it
  bool too_late = false;
};

/// Returns the verdict, without a cause. Pure.
[[nodiscard]] profile::WatchTrial judge_trial(const TrialFindings& findings, const TrialEnd& end);

/// A trap kills a program that blocks its signal before Linux 5.19; later the signal waits.
enum class BlockedTrap : std::uint32_t { unknown, waits, kills };
[[nodiscard]] BlockedTrap judge_blocked_trap(const TrialFindings& findings, const TrialEnd& end);

struct TrialOutcome {
  profile::WatchTrial trial;  // all but `registers` and the cause
  int open_error = 0;         // errno, of `not_opened`
};
/// Makes the test; it takes `limit_ms` at most.
[[nodiscard]] TrialOutcome try_watchpoints(int limit_ms = 1000);
[[nodiscard]] BlockedTrap try_blocked_trap(int limit_ms = 1000);
/// True if blocked traps kill, or if this is not known of an older kernel.
[[nodiscard]] bool blocked_traps_kill();

}  // namespace crosstalk::collectors
