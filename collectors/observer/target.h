// SPDX-License-Identifier: Apache-2.0
// A process that is watched, as it changes: its threads come and go, it maps and unmaps code, it executes another
// program, it ends. Each change becomes the records that the process would have written itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/zeroed.h"
#include "collectors/observer/arena_ring.h"
#include "collectors/observer/cpu_times.h"
#include "collectors/observer/kernel_events.h"
#include "collectors/observer/target_process.h"
#include "collectors/observer/tracing.h"
#include "collectors/observer/watched_thread.h"
#include "collectors/watch_policy/board.h"

namespace crosstalk::observer {

struct TargetIdentity {
  pid_t pid = 0;
  pid_t parent = 0;          // 0: as /proc has it
  std::uint32_t number = 0;  // of the process in its recording
  bool newborn = false;      // it began during the recording: its CPU time counts from its first instruction
  bool whole_life = false;   // it counts on through an exec: the recorder takes off what earlier programs had
};

/// Not thread-safe. Not movable: its threads refer to it.
class Target {
 public:
  /// `arena` and `memory` outlive it. `period_ns`: CPU time between two samples of a thread. `memory`: events of its
  /// threads that sample their accesses; none: their clocks alone do.
  Target(TargetIdentity identity, ArenaAccess& arena, std::uint64_t period_ns, const MemoryEvents& memory);
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() = default;

  /// Begins to watch all existing threads. Fails if none can be watched; not_found: it has ended.
  [[nodiscard]] Result<void> begin();
  /// Begins to watch a thread; one that is watched already, or gone, is left alone.
  Result<void> meet(pid_t tid);
  /// Meets the threads that are there and not yet watched.
  void meet_all();
  /// Stops watching a thread, and destroys it. `exit_ns`: when it exited, CLOCK_MONOTONIC; absent: it may live on. Ends
  /// the process with its last thread, if it has ended.
  void part(const WatchedThread& thread, std::optional<std::uint64_t> exit_ns);
  void part_all();
  /// Stops watching the process for good.
  void leave();
  [[nodiscard]] bool is_left() const { return left_; }
  /// Closes its events and rings, and opens them again. False: the thread is gone, or no event can be opened.
  static void rest(WatchedThread& thread);
  static bool rouse(WatchedThread& thread);
  /// Begins anew after its process has executed another program: only its first thread is left.
  void begin_anew();
  /// Makes tend() read the mappings soon: they have changed, or lack what was met.
  void expect_new_maps() { maps_changed_ = true; }
  /// Makes tend() read the mappings in time: changes were not reported for a while.
  void doubt_maps() { maps_doubtful_ = true; }
  /// `allowed`: the part of one processor that reading doubtful mappings may take.
  void tend(std::uint64_t now_ns, double allowed);
  /// Learns the thread's stack from the stack pointer of its first sample.
  void learn_stack(WatchedThread& thread, std::uint64_t stack_pointer) const;
  /// Returns the line at `address`, where a thread of this process was sampled, if processes can share its memory.
  /// Records the mapping there when it is seen first.
  watch_policy::SharedLine touch(WatchedThread& thread, std::uint64_t address, std::uint64_t time_ns);
  /// True if one of its threads has been sampled in the line's memory.
  [[nodiscard]] bool has_touched(const watch_policy::SharedLine& line) const {
    return touched_.contains(line.object());
  }

  [[nodiscard]] pid_t pid() const { return identity_.pid; }
  /// Readable once the process has ended; -1 if there is none.
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  [[nodiscard]] bool has_ended() const;
  [[nodiscard]] const WatchedThreads& threads() const { return threads_; }
  [[nodiscard]] const std::vector<Mapping>& maps() const { return maps_; }
  [[nodiscard]] const TargetMemory& memory() const { return memory_; }
  /// Returns the state of the process's tracers.
  [[nodiscard]] Tracing& tracing() { return tracing_; }
  [[nodiscard]] const Tracing& tracing() const { return tracing_; }
  [[nodiscard]] profile::ArenaHeader& arena() const { return arena_.header(); }
  /// Returns the board of lines that are not shared with other processes. It takes memory once it is asked for.
  [[nodiscard]] watch_policy::Board& board();
  /// Sets the periods with which the memory events of future threads begin.
  void learn_periods(MemorySampler::Periods periods) { memory_periods_ = std::move(periods); }
  /// Sets the period with which the clocks of future threads begin.
  void set_period(std::uint64_t period_ns) { period_ns_ = period_ns; }
  /// Sets the period of the thread's clock.
  static void set_period(WatchedThread& thread, std::uint64_t period_ns);
  /// Returns the number of new threads that were gone before they could be watched.
  [[nodiscard]] std::uint64_t missed() const { return missed_; }
  void forget_missed() { missed_ = 0; }
  /// At each review: forgets the threads that were met before the last one. Their starts have been reported by now.
  void forget_met() { met_before_ = std::exchange(met_, {}); }
  /// Compares the process's CPU time with that of its threads, which were reviewed just now.
  void count_cpu_times();
  /// Returns what count_cpu_times() found last.
  [[nodiscard]] const CpuTimes& cpu_times() const { return times_; }
  /// Returns the number of live threads that could not be watched, and the reason for the last of them.
  [[nodiscard]] std::uint64_t refused() const { return refused_.size(); }
  [[nodiscard]] const std::string& refusal() const { return refusal_; }
  /// Returns the number of threads that have their clocks alone, since their accesses could not be sampled, and the
  /// reason for the last of them.
  [[nodiscard]] std::uint64_t unmeasured() const { return unmeasured_.size(); }
  [[nodiscard]] const std::string& why_unmeasured() const { return why_unmeasured_; }

 private:
  struct Events {
    OpenEvent clock;
    PerfRing ring;
    std::optional<MemorySampler> memory;
  };
  /// `briefly`: until it rests again, which is soon: events until then may wait.
  [[nodiscard]] Result<Events> open_events(pid_t tid, std::uint64_t period_ns, bool briefly, std::uint64_t& random);
  [[nodiscard]] std::optional<MemorySampler> open_memory(pid_t tid, std::uint64_t& random);
  static void start(WatchedThread& thread);
  [[nodiscard]] Result<std::unique_ptr<WatchedThread>> make_thread(pid_t tid);
  void write_process(WatchedThread& thread) const;
  void write_start(WatchedThread& thread, const std::string& name) const;
  void read_maps(std::uint64_t now_ns);
  bool may_have_other_modules(std::uint64_t now_ns);
  void begin_cpu_times();
  void write_modules(std::vector<TargetModule> modules);
  [[nodiscard]] bool watched(pid_t tid) const;

  TargetIdentity identity_;
  UniqueFd pidfd_;
  ArenaAccess& arena_;
  const MemoryEvents& memory_events_;
  MemorySampler::Periods memory_periods_;
  TargetMemory memory_;
  Tracing tracing_;
  Zeroed<watch_policy::Board> board_;  // null: nobody has asked for it
  std::vector<Mapping> maps_;
  std::vector<TargetModule> modules_;
  std::vector<Mapping> code_maps_;  // that they were found by
  std::uint64_t modules_due_ns_ = 0;
  bool maps_changed_ = true, maps_doubtful_ = false;
  std::uint64_t maps_due_ns_ = 0, doubtful_maps_due_ns_ = 0;
  std::set<std::uint64_t> touched_;  // objects of SharedLine
  std::vector<Mapping> recorded_;    // of shared memory
  WatchedThreads threads_;
  bool with_kernel_ = false;
  bool left_ = false;
  bool announced_ = false;  // this program of the process has written its start
  std::uint64_t period_ns_;
  std::uint64_t begun_ = 0;  // threads
  std::set<pid_t> older_;  // threads whose CPU time so far belongs to no record of this program: others' count in full
  std::uint64_t missed_ = 0;
  std::set<pid_t> met_, met_before_;  // threads that were met, or missed, since the last review and the one before
  std::uint64_t cpu_before_ns_ = 0;   // CPU time of the process that is no record's
  std::uint64_t all_ns_ = 0;          // the process's CPU time when the kernel told it last
  std::uint64_t parted_ns_ = 0;       // recorded, of threads that were parted with
  CpuTimes times_;
  std::set<pid_t> refused_;
  std::string refusal_;
  std::set<pid_t> unmeasured_;
  std::string why_unmeasured_;
};

}  // namespace crosstalk::observer
