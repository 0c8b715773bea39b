// SPDX-License-Identifier: Apache-2.0
// The collector that watches running processes from outside.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "collectors/observer/cpu_times.h"
#include "collectors/pmu/counter_groups.h"
#include "collectors/pmu/memory_events.h"
#include "profile/model.h"

namespace crosstalk::observer {

class Session;
struct PassedOver;  // targets.h

/// The processes to watch, and the settings.
struct Assignment {
  std::vector<pid_t> pids;                         // check_process() has found them to be such processes; none: take()
  bool children = false;                           // with the processes that they have started, and start
  std::uint32_t registers = 0;                     // debug registers that a thread may have
  std::vector<collectors::MemoryEvent> memory;     // events that sample accesses, beside the clocks
  std::vector<collectors::CounterGroup> counters;  // hardware counters that are read of each thread
  std::optional<uid_t> owner;                      // only processes that belong to this user (check_owner())
  std::vector<int> pidfds;                         // one of each of `pids`, which must live once attached; or none
};

/// While it lives, and until it is stopped, a thread of this process watches the targets and writes its observations
/// into the arena. It may be stopped, and dies with this process, at any time without harm to the targets.
class Observer {
 public:
  /// Attaches to all threads of these processes. `arena`: its path. Refused, in one line that names the process, if one
  /// of them cannot be watched. The calling thread's blocked signals are blocked in the observer's thread.
  [[nodiscard]] static Result<std::unique_ptr<Observer>> attach(const Assignment& assignment, const std::string& arena);
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  ~Observer();

  /// Readable once all of them have ended, and with processes to take() once no more are expected, either.
  [[nodiscard]] int ended_fd() const { return ended_.get(); }
  /// Begins to watch one more process, which another collector in the same arena has not. not_found: it has ended. The
  /// time that this takes is the caller's. Only of an observer that began without a process.
  [[nodiscard]] Result<void> take(pid_t pid);
  void expect_no_more() { expects_more_.store(false, std::memory_order_relaxed); }
  /// Leaves the targets; all observations are in the arena when this returns. A second call does nothing.
  void stop();
  /// Returns the processes' CPU times since their beginning, or since they were attached to.
  [[nodiscard]] CpuTimes cpu_times();
  /// Returns warnings about what went unwatched since the last call. Waits while records are handled.
  [[nodiscard]] std::vector<profile::MessageRow> take_remarks();
  /// All that the kernel reported before this time (CLOCK_MONOTONIC, ns) is in the arena. Any thread.
  [[nodiscard]] std::uint64_t handled_until_ns() const { return handled_until_ns_.load(std::memory_order_acquire); }
  /// Returns the children since the last call that were to be watched and could not be.
  [[nodiscard]] std::vector<PassedOver> take_refused();

 private:
  Observer(std::unique_ptr<Session> session, UniqueFd stop, UniqueFd ended, bool expects_more);
  void run();

  std::mutex mutex_;  // of the session: its thread leaves it while it sleeps
  std::unique_ptr<Session> session_;
  UniqueFd stop_, ended_;           // readable once it is to end, and once its targets have
  std::atomic<bool> expects_more_;  // processes to take()
  std::atomic<std::uint64_t> handled_until_ns_{0};
  std::thread thread_;
};

}  // namespace crosstalk::observer
