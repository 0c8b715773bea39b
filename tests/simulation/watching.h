// SPDX-License-Identifier: Apache-2.0
// The collector's watch policy (collectors/watch_policy/) with simulated traps. This file stands in for the kernel and
// the processor of a target: watchpoints fire, alarms expire.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/budget.h"
#include "collectors/watch_policy/runs.h"
#include "collectors/watch_policy/selection.h"
#include "collectors/watch_policy/words.h"
#include "profile/model.h"
#include "tests/simulation/program.h"

namespace crosstalk::simulation {

inline constexpr std::uint64_t first_line_address = 0x10000000;
[[nodiscard]] constexpr std::uint64_t address_of(std::uint32_t line) {
  return first_line_address + std::uint64_t{line} * profile::cache_line;
}
/// Returns the address after a simulated instruction, which encodes its access.
[[nodiscard]] constexpr std::uint64_t ip_after(AccessKind kind, std::uint32_t width) {
  return 0x400000 + 16 * static_cast<std::uint64_t>(kind) + 0x1000 * std::uint64_t{width};
}

class Watching {
 public:
  /// Threads 0 .. threads - 1 live from the begin.
  Watching(const Observer& observer, std::uint32_t threads, std::uint32_t access_bytes, std::uint64_t seed);

  /// A thread begins whose number no thread has had, or ends.
  void begins(std::uint32_t thread);
  void ends(std::uint32_t thread);

  /// A thread has been sampled, `cpu_ns` of its own time after the sample before; its last access is in the row. Sets
  /// the row's flags and watch. Returns the time that the thread stands still, if it opens the watch itself or its line
  /// is probed.
  double sample(profile::SampleRow& row, std::uint64_t cpu_ns);
  /// A thread accesses a line. Returns the number of watchpoints that fired.
  std::uint32_t access(std::uint32_t thread, const Access& access, double now_ns);
  /// Closes watches whose alarm has rung by now, and looks again at a probed line if it is time.
  void pass(double now_ns);
  /// Closes all that is open.
  void finish(double now_ns);

  [[nodiscard]] std::vector<profile::WatchRow> take_watches() { return std::move(watches_); }
  /// By watch, then sequence.
  [[nodiscard]] std::vector<profile::TrapRow> take_traps();

 private:
  using WatchMode = watch_policy::WatchMode;
  using Modes = std::array<WatchMode, watch_policy::words_per_slot>;

  struct Slot {
    std::uint32_t watch = 0;  // id; 0: idle
    bool suspected = false;
    std::uint64_t line = 0;
    std::uint32_t opener = 0;    // the sampled thread
    double armed_ns = 0;         // from then on the others are armed
    std::uint64_t alarm_ns = 0;  // when it rings; 0: it is not set
    std::uint64_t cost_ns = 0;
    watch_policy::WatchProgress progress;
    watch_policy::WordChoice choice;
    std::vector<Modes> mode;  // by thread; of those that began later, none
  };

  struct Probed {             // a line that is to be looked at again
    std::uint32_t watch = 0;  // id; 0: none
    double due_ns = 0;
    profile::LineState before;
  };

  Slot* room(bool suspected);
  double probe(profile::SampleRow& row, bool suspected);
  void look_again();
  profile::WatchRow new_watch(profile::SampleRow& row, bool suspected);
  double open(Slot& slot, profile::SampleRow& row, const watch_policy::SampledAccess& access,
              const watch_policy::Suspicion& suspicion, bool suspected);
  std::uint32_t arm(Slot& slot, std::uint32_t sampled, const watch_policy::SampledAccess& access,
                    const watch_policy::Suspicion& suspicion);
  bool trap(Slot& slot, std::uint32_t thread, std::uint32_t word, const Access& access, std::uint64_t now_ns);
  void expire(std::uint64_t now_ns);
  void close(Slot& slot, std::uint64_t now_ns, profile::CloseReason reason);
  void spend(std::uint64_t ns, bool exploring);
  profile::LineState& state_of(std::uint64_t line);
  [[nodiscard]] bool lives(std::uint32_t thread) const;

  const Observer observer_;  // its own: callers pass what they just made
  const std::uint32_t word_bytes_;
  const watch_policy::SlotPlan plan_;
  Random random_;                // of what chance does
  std::uint64_t policy_random_;  // of what the policy draws
  std::unique_ptr<watch_policy::Board> board_ = std::make_unique<watch_policy::Board>();
  watch_policy::Budget budget_;
  std::uint64_t mean_cost_ns_;
  std::vector<std::uint32_t> living_;       // threads, the oldest first
  std::vector<std::uint64_t> samples_;      // by thread
  std::vector<profile::LineState> states_;  // by line; each store counts one on
  std::array<Slot, watch_policy::watch_slots> slot_{};
  Probed probed_;
  std::vector<profile::WatchRow> watches_;
  std::vector<profile::TrapRow> traps_;
};

}  // namespace crosstalk::simulation
