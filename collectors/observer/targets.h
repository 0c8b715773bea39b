// SPDX-License-Identifier: Apache-2.0
// Keeps all watched processes: the ones that were asked for and, if wanted, the ones that they start. Processes come
// and go; their common state is kept here.
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
#include "collectors/observer/target.h"
#include "collectors/observer/watches.h"

namespace crosstalk::observer {

/// Unwatched threads and processes, and the reasons.
struct Unwatched {
  std::uint64_t brief_threads = 0, brief_processes = 0;      // had ended before they could be watched
  std::uint64_t refused_threads = 0, refused_processes = 0;  // were there
  std::string thread_refusal, process_refusal;               // why, of the last of them
  std::uint64_t unmeasured_threads = 0;                      // have their clocks alone
  std::string why_unmeasured;                                // the last of them
  std::uint64_t traced_processes = 0;                        // of which no line was watched as long as they were
  std::string tracer;                                        // tracer of the last of them
  bool rested = false;  // threads had no clock for a part of the time: threads that they started then were not reported
};

/// A process that could not be watched as wanted.
struct PassedOver {
  pid_t pid = 0, parent = 0;
  std::uint64_t time_ns = 0;  // CLOCK_MONOTONIC: when that was found out
  ProcessFacts facts;
  std::string why;
};

/// The processes that are watched.
struct Selection {
  bool children = false;        // those that they start, too
  std::optional<uid_t> owner;   // only those that belong to this user
  bool beside_library = false;  // not those that the library in them observes, which is told of all others' beginnings
};

/// Not thread-safe.
class Targets {
 public:
  /// `memory`, which outlives this: events that sample the accesses of each thread.
  Targets(ArenaAccess arena, const Selection& selection, const MemoryEvents& memory);

  /// Begins to watch these processes. Fails if one of them cannot be watched, in one line that names it.
  [[nodiscard]] Result<void> begin(const std::vector<pid_t>& pids);
  /// Begins to watch one more process; not_found: it has ended.
  [[nodiscard]] Result<void> take(pid_t pid);
  /// One of them has made a thread, or started a process.
  void meet(pid_t pid, pid_t tid, pid_t parent);
  /// Begins to watch existing threads, and if wanted children, that are not yet watched.
  void meet_all();
  /// True if the process belongs to a user whose processes are not watched, or to the library in it.
  [[nodiscard]] bool is_stranger(const Target& process) const;
  /// True if the process may have executed a program of another user meanwhile, unreported, and it did.
  [[nodiscard]] bool may_be_others(const Target& process) const;
  /// Parts with a process that is a stranger now, for good. True if it is one.
  [[nodiscard]] bool leave_if_stranger(Target& process);
  /// Drops processes that have ended, or were left, and have no watched threads.
  void retire();
  void part_all();

  using Processes = std::vector<std::unique_ptr<Target>>;
  [[nodiscard]] const Processes& processes() const { return processes_; }
  /// Null: it is not watched.
  [[nodiscard]] Target* process_of(pid_t pid) const;
  [[nodiscard]] WatchedThread* thread_of(pid_t tid) const;
  [[nodiscard]] std::size_t thread_count() const;

  /// Returns the line at `address`, where a thread was sampled, if processes can share it, and tells if others of these
  /// do.
  [[nodiscard]] watch_policy::SharedLine touch(WatchedThread& thread, std::uint64_t address, std::uint64_t time_ns);
  /// The other threads that have the line, of the same process, or of those that share it.
  [[nodiscard]] std::vector<LinePlace> others_at(const WatchedThread& self, std::uint64_t line,
                                                 const watch_policy::SharedLine& shared) const;
  /// The bulletin board that knows a line of the thread's process.
  [[nodiscard]] watch_policy::Board& board_of(const WatchedThread& thread, const watch_policy::SharedLine& shared);

  [[nodiscard]] profile::ArenaHeader& arena() const { return arena_.header(); }
  /// CPU time between two samples of a thread.
  [[nodiscard]] std::uint64_t period_ns() const { return period_ns_; }
  void set_period(std::uint64_t period_ns);
  [[nodiscard]] Unwatched unwatched() const;
  /// Returns the times of all processes, past ones included, as last counted.
  [[nodiscard]] CpuTimes cpu_times() const;
  /// Returns the processes since the last call that were there, and refused: the first thousand.
  [[nodiscard]] std::vector<PassedOver> take_refused() { return std::exchange(refused_, {}); }
  /// Forgets what unwatched() tells of processes and threads that are gone.
  void forget_told();

 private:
  [[nodiscard]] Result<void> add(pid_t pid, pid_t parent);
  [[nodiscard]] Result<void> check(pid_t pid) const;
  [[nodiscard]] bool is_librarys(pid_t pid) const { return selection_.beside_library && loads_library(pid); }
  void add_child(pid_t pid, pid_t parent);
  void pass_over(pid_t pid, pid_t parent, const std::string& why);
  bool meet_children();
  static void add_to(Unwatched& sum, const Target& target);

  ArenaAccess arena_;
  Selection selection_;
  const MemoryEvents& memory_;
  Processes processes_;
  std::uint32_t begun_ = 0;  // processes
  bool recording_ = false;   // begin() is over: processes that are met from now on began during the recording
  std::uint64_t period_ns_;
  std::uint64_t look_due_ns_ = 0;             // for unreported threads
  Zeroed<watch_policy::Board> shared_board_;  // of lines that processes share
  std::set<pid_t> passed_over_;               // children that could not be watched
  Unwatched retired_;                         // of those, and of processes that have ended
  CpuTimes retired_times_;                    // of processes that have ended
  std::vector<PassedOver> refused_;
};

}  // namespace crosstalk::observer
