// SPDX-License-Identifier: Apache-2.0
// The process that is watched, as it changes: its threads come and go, it maps and unmaps code, it executes another
// program. Each change becomes the records that the process would have written itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/observer/arena_ring.h"
#include "collectors/observer/kernel_events.h"
#include "collectors/observer/target_process.h"
#include "collectors/observer/watched_thread.h"

namespace crosstalk::observer {

/// Not thread-safe.
class Target {
 public:
  Target(pid_t pid, ArenaAccess arena);

  /// Begins to watch all threads that there are. Fails where not one can be watched.
  [[nodiscard]] Result<void> begin();
  /// Begins to watch a thread; one that is watched already, or gone, is left alone.
  Result<void> meet(pid_t tid);
  /// Meets the threads that are there and not yet watched.
  void meet_all();
  /// The thread has `exited`, or is to be watched no more. `thread` is destroyed. With the last one the process ends,
  /// if it has.
  void part(const WatchedThread& thread, bool exited);
  void part_all();
  /// Its clock and ring are closed, and opened again. False: the thread is gone, or no event can be had.
  static void rest(WatchedThread& thread);
  bool rouse(WatchedThread& thread);
  /// Its process executes another program: of its threads only the first is left.
  void begin_anew();
  /// Looks at what is mapped now.
  void read_maps();
  /// Where its stack is, by the stack pointer of its first sample.
  void learn_stack(WatchedThread& thread, std::uint64_t stack_pointer) const;
  /// What a user should know; one line.
  void message(const char* code, const std::string& text);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const WatchedThreads& threads() const { return threads_; }
  [[nodiscard]] const std::vector<Mapping>& maps() const { return maps_; }
  [[nodiscard]] const TargetMemory& memory() const { return memory_; }
  [[nodiscard]] profile::ArenaHeader& arena() const { return arena_.header(); }
  /// CPU time between two samples of a thread.
  [[nodiscard]] std::uint64_t period_ns() const { return period_ns_; }
  void set_period(std::uint64_t period_ns);
  /// New threads that were gone before they could be watched.
  [[nodiscard]] std::uint64_t missed() const { return missed_; }
  /// Threads that were there and could not be watched, and why the last of them.
  [[nodiscard]] std::uint64_t refused() const { return refused_.size(); }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }

 private:
  struct Events {
    OpenEvent clock;
    PerfRing ring;
  };
  [[nodiscard]] Result<Events> open_events(pid_t tid, std::uint64_t& random) const;
  [[nodiscard]] Result<std::unique_ptr<WatchedThread>> make_thread(pid_t tid);
  void write_process(WatchedThread& thread) const;
  void write_start(WatchedThread& thread, const std::string& name) const;
  [[nodiscard]] bool watched(pid_t tid) const;

  pid_t pid_;
  ArenaAccess arena_;
  TargetMemory memory_;
  std::vector<Mapping> maps_;
  std::vector<TargetModule> modules_;
  WatchedThreads threads_;
  bool with_kernel_ = false;
  bool announced_ = false;  // this program of the process has written its start
  std::uint64_t period_ns_;
  std::uint64_t begun_ = 0;  // threads
  std::uint64_t missed_ = 0;
  std::set<pid_t> refused_;
  std::string refusal_;
};

}  // namespace crosstalk::observer
