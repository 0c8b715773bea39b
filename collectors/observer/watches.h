// SPDX-License-Identifier: Apache-2.0
// Watches a line in all threads that have it, of one process or of several that share it, from outside. The watch
// policy (collectors/watch_policy/) decides, and breakpoint events of the threads carry it out.
//
// A thread goes on as soon as its access is in the ring; the observer reads of it some 100 us later. So steps that
// happen between two accesses inside a target happen after them here:
//   - Each thread is armed with a number of shots. The kernel reports so many accesses and then switches the breakpoint
//     off: a thread that hammers on the line loses a bounded time, however late the observer is.
//   - The policy is run over the reported accesses, in the order of their times: of each run of an owner it takes the
//     first access and the first store, as it would by arming and disarming. The rest is passed over.
//   - A breakpoint's mode is changed afterwards, and only if it matters: a thread whose accesses are wanted is given
//     new shots, and one that goes on with unwanted accesses has its breakpoint changed or closed.
//   - A watch's time begins when all threads are armed, and ends when their accesses in that time have been read. The
//     observer may wait for a processor, as in a busy virtual machine: else it would arm threads after the end, or look
//     away before.
//   - The sampled access is in the past by then, too. So a watch begins with the sampled thread's next access, and the
//     sample is marked as one that came before its access.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "collectors/observer/perf_attributes.h"
#include "collectors/observer/perf_types.h"
#include "collectors/observer/watched_thread.h"
#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/budget.h"
#include "collectors/watch_policy/runs.h"
#include "collectors/watch_policy/selection.h"
#include "collectors/watch_policy/words.h"

namespace crosstalk::observer {

/// Accesses that a breakpoint reports before the kernel switches it off.
inline constexpr std::uint32_t shots_a_breakpoint = 16;

/// The services that watching needs.
class WatchWorld {
 public:
  WatchWorld() = default;
  WatchWorld(const WatchWorld&) = delete;
  WatchWorld& operator=(const WatchWorld&) = delete;
  virtual ~WatchWorld() = default;

  /// Returns a disabled breakpoint of the thread, whose reports go into the thread's ring. Nothing: there is none now.
  virtual std::optional<OpenEvent> prepare(const WatchedThread& thread, const WatchedPlace& place) = 0;
  /// Enables it for so many accesses.
  virtual void enable(const OpenEvent& breakpoint, std::uint32_t shots) = 0;
  virtual std::uint64_t now_ns() = 0;  // CLOCK_MONOTONIC
  virtual std::uint64_t cpu_ns() = 0;  // CPU time of the observer
  /// Unique in the recording, > 0.
  virtual std::uint32_t new_watch() = 0;
  /// True if the thread's access before these registers was a store, as far as its code tells.
  virtual bool was_store(const WatchedThread& thread, const PerfSample& trap) = 0;
};

/// A thread, and the line's address in its process.
struct LinePlace {
  WatchedThread* thread = nullptr;
  std::uint64_t line = 0;
};

struct WatchRequest {
  std::uint64_t line = 0;                // its address in the sampled thread
  std::vector<LinePlace> others;         // the other threads that have it
  watch_policy::Board* board = nullptr;  // knows the line, and outlives the watch
  std::uint64_t key = 0;                 // by which it does
  watch_policy::SampledAccess access;
  watch_policy::Suspicion suspicion;
  bool suspected = false;
};

/// Limits the stacks to write: so many a second, and a second's worth at once.
class StackAllowance {
 public:
  explicit StackAllowance(std::uint32_t stacks_per_s) : rate_(stacks_per_s) {}
  bool take(std::uint64_t now_ns);

 private:
  std::uint32_t rate_;
  std::uint64_t paid_until_ns_ = 0;
};

struct WatchSettings {
  std::uint32_t registers = 0;  // 0..4
  std::uint64_t horizon_ns = 0;
  std::uint64_t trap_cost_ns = 0;  // cost of a reported access to its thread
  std::uint32_t stacks_per_s = 0;  // written with accesses
};

/// Not thread-safe.
class Watches {
 public:
  Watches(WatchWorld& world, watch_policy::Budget& budget, const WatchSettings& settings);

  [[nodiscard]] bool usable() const { return plan_.slots > 0; }
  /// True if there is a slot for such a watch.
  [[nodiscard]] bool has_room(bool suspected) const;
  [[nodiscard]] std::uint64_t mean_cost_ns() const { return mean_cost_ns_; }
  /// Returns the observer's own CPU time that went into watching.
  [[nodiscard]] std::uint64_t own_ns() const { return own_ns_; }
  /// Opens a watch and records it in the thread's ring. Returns its id; 0: no other thread could be armed.
  std::uint32_t open(WatchedThread& self, const WatchRequest& request);
  /// Takes a sample of `thread` that is no clock's. Samples of all threads come by ascending time.
  void trapped(WatchedThread& thread, const PerfSample& trap);
  /// Sets the breakpoints to the policy's wishes after the samples so far, and closes watches whose time was over at
  /// `read_until_ns` (CLOCK_MONOTONIC): trapped() has told all accesses until then, later ones may still be in the
  /// rings.
  void settle(std::uint64_t read_until_ns);
  /// Returns when the time of the next watch is over; UINT64_MAX: there is none.
  [[nodiscard]] std::uint64_t next_end_ns() const;
  /// True if the thread is armed.
  [[nodiscard]] bool involves(const WatchedThread& thread) const;
  /// Forgets a thread that is gone.
  void leave(const WatchedThread& thread);
  void close_all();

 private:
  using WatchMode = watch_policy::WatchMode;
  struct Breakpoint {
    OpenEvent event;
    WatchMode mode = WatchMode::off;  // of the event
    std::uint32_t left = 0;           // accesses that it can still report
  };
  struct Part {  // of one thread in a watch
    WatchedThread* thread = nullptr;
    std::uint64_t line = 0;  // the line's address in its process
    std::array<WatchMode, watch_policy::words_per_slot> wanted{};
    std::array<std::optional<Breakpoint>, watch_policy::words_per_slot> breakpoint;
  };
  struct Slot {
    std::uint32_t watch = 0;  // 0: idle
    bool suspected = false, changed = false;
    std::uint64_t line = 0;  // its address in the sampled thread
    watch_policy::Board* board = nullptr;
    std::uint64_t key = 0;  // of the board
    std::uint64_t cost_ns = 0;
    watch_policy::WordChoice choice;
    watch_policy::WatchProgress progress;
    std::vector<Part> parts;
  };

  bool prepare(Slot& slot, Part& part, std::uint32_t word);
  bool prepare_all(Slot& slot, Part& part);
  void enable(Slot& slot, Part& part, std::uint32_t word);
  void prepare_others(Slot& slot, WatchedThread& self, const WatchRequest& request);
  void enable_all(Slot& slot);
  static void write_open(const Slot& slot, const WatchedThread& self, std::size_t threads, std::uint64_t horizon_ns,
                         std::uint64_t begin_ns);
  void take(Slot& slot, Part& part, std::uint32_t word, const PerfSample& trap);
  void settle(Slot& slot, Part& part, std::uint32_t word);
  void close(Slot& slot, profile::CloseReason reason, std::uint64_t time_ns);
  void charge(Slot& slot, std::uint64_t ns, const WatchedThread& payer);
  void charge_own(Slot& slot, std::uint64_t ns);
  void attribute(Slot& slot, std::uint64_t ns);

  WatchWorld& world_;
  watch_policy::Budget& budget_;
  WatchSettings settings_;
  watch_policy::SlotPlan plan_;
  StackAllowance stacks_;
  std::uint64_t mean_cost_ns_;
  std::uint64_t own_ns_ = 0;
  std::array<Slot, watch_policy::watch_slots> slots_;
};

}  // namespace crosstalk::observer
