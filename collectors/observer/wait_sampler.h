// SPDX-License-Identifier: Apache-2.0
// Looks at the watched threads at moments drawn by chance, and tells in which waits on futexes they were asleep: locks,
// conditions, barriers, joins. It reads two files of a thread in /proc and, of one that sleeps, a piece of stack. None
// of that stops or wakes the thread.
#pragma once

#include <cstdint>
#include <string>

#include "collectors/observer/targets.h"
#include "profile/arena.h"

namespace crosstalk::observer {

/// The pause between two looks at all threads on the average. `look_ns`: CPU time of one. `processors`: that the
/// threads keep busy, on the average.
[[nodiscard]] std::uint64_t pause_between_looks(double look_ns, double processors, double budget);

/// Threads whose waits are not known.
struct UnknownWaits {
  std::uint64_t threads = 0;
  std::string why;  // of the last one
};

/// Not thread-safe.
class WaitSampler {
 public:
  /// Does nothing if the settings do not want waits.
  WaitSampler(const profile::SessionConfig& config, std::uint64_t random, std::uint64_t now_ns);

  /// When the next look is due; UINT64_MAX: never.
  [[nodiscard]] std::uint64_t due_ns() const { return due_ns_; }
  /// Looks at all threads, if it is due.
  void look(const Targets& targets, std::uint64_t now_ns);
  /// Looks at those that are left at the end: else the time since the look before would be without one.
  void look_at_last(const Targets& targets);
  /// Tells what is not told yet of a thread: it is parted with next, or a profile ends.
  static void leave(WatchedThread& thread);
  /// Sets the pause. `cpu_ns`: of the threads, so far.
  void review(std::uint64_t cpu_ns, std::uint64_t now_ns);
  /// Returns the threads since forget_told() whose waits are not known.
  [[nodiscard]] const UnknownWaits& unknown() const { return unknown_; }
  void forget_told() { unknown_ = {}; }

 private:
  void begin(WatchedThread& thread);
  void look(WatchedThread& thread);
  [[nodiscard]] static bool note(WatchedThread& thread, const LookTime& time);
  void refuse(WatchedThread& thread, int error);

  double budget_;
  std::uint64_t random_;
  std::uint64_t pause_ns_;
  std::uint64_t due_ns_;
  std::uint64_t tell_due_ns_;
  std::uint64_t spent_ns_ = 0, rounds_ = 0;          // CPU time of looks since the last review
  std::uint64_t reviewed_ns_, reviewed_cpu_ns_ = 0;  // at the last review
  UnknownWaits unknown_;
};

}  // namespace crosstalk::observer
