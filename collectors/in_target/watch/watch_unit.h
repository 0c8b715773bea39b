// SPDX-License-Identifier: Apache-2.0
// The watchpoint unit: watches a line in the threads of the process that can be armed, and records which
// threads access it, in the order of their accesses.
//
// The watch policy (collectors/watch_policy/) decides which samples begin a watch, on which words and for how long, and
// which threads are armed in which mode after a trap. This unit carries out its decisions.
//
// While any data breakpoint is enabled, `rep movs` and `rep stos` (memcpy(), the kernel's copies, its clearing of
// pages) run about four times slower. So a line without suspicion usually gets a brief watch. An alarm ends it if the
// next sample would come too late.
//
// Processes that share a line's memory watch it together, and the progress is common (cross_process_state.h). The
// thread that opens the watch arms threads of the other processes, too (remote_events.h). Another process
// joins the watch at the next trap or sample of one of its threads. It then arms its threads that the opener left out.
//
// Signal-safe. A slot changes under a try-lock. A thread that fails to get it after some tries leaves the change out.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/registers.h"
#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/processes/cross_process_state.h"
#include "collectors/in_target/sys/try_lock.h"
#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/interruption.h"
#include "collectors/watch_policy/runs.h"
#include "collectors/watch_policy/selection.h"
#include "collectors/watch_policy/words.h"
#include "profile/records.h"

namespace crosstalk::in_target {

struct WatchRequest {
  const ThreadState* thread = nullptr;
  profile::Sample* sample = nullptr;   // its `watch` and flags are filled in when a watch is opened
  watch_policy::SampledAccess access;  // the sample's
  SharedLine shared;
  watch_policy::Suspicion suspicion;
  bool suspected = false;
};

using watch_policy::lost_by_interruption;

class WatchUnit {
 public:
  /// `words` debug registers, 0..4.
  void start(std::uint32_t words, std::uint64_t horizon_ns);
  /// Forgets all watches without touching any event (after fork).
  void forget();
  [[nodiscard]] bool usable() const { return plan().slots > 0; }

  /// Prepares the calling thread for being armed, and keeps its events open if ThreadState::keeps_events. Called at
  /// each sample if there are other threads or shared memory; costs nothing while nothing changes.
  void attend(ThreadState& self);
  /// Does the same at once for a calling thread that may end before its first sample, if another thread got all
  /// registers.
  void expect(ThreadState& self);
  /// Opens a watch for a sample, if a slot and descriptors are free. True if it did.
  bool open(ThreadState& self, const WatchRequest& request, std::uint64_t now_ns);
  /// True if there is a slot for such a request of the calling thread now.
  [[nodiscard]] bool has_room(const ThreadState& self, bool suspected, std::uint64_t now_ns) const;
  /// A watchpoint of `self` fired. False: it was not (or no longer) one of ours to report.
  bool trapped(ThreadState& self, std::uint32_t event, std::uint64_t address, const Registers& registers,
               std::uint64_t flags, std::uint64_t now_ns);
  /// Handles a watchpoint of `self` that fired while the signal was blocked: in our own handler, or in the target's.
  /// The registers of that access are unknown. The event is disabled until it is next armed, so that it does not
  /// repeat.
  void trapped_in_handler(ThreadState& self, std::uint32_t event);
  /// Closes watches that are past their deadlines (the horizon, a brief one, or one that a first visitor extended).
  /// True if there was one.
  bool expire(ThreadState& self, std::uint64_t now_ns);
  /// Looks at the watches that other processes opened or joined: joins them, moves the watchpoints of `self`, leaves
  /// those that are over. At each sample; costs nothing in a program that shares no memory.
  void follow(ThreadState& self, std::uint64_t now_ns);
  /// Closes the events of a thread. They are opened again when they are needed, with other descriptor numbers.
  static void renew_events(ThreadState& thread);
  /// Does the same for our events on threads of other processes.
  void renew_remote_events();
  /// Forbids other processes to arm our threads, until readmit().
  static void withdraw();
  static void readmit();
  /// The alarm of `self` has rung: closes the watches that are past their deadlines.
  void alarmed(ThreadState& self, std::uint64_t now_ns);
  /// Rests: closes the events that threads keep open, except those of watches that are still open.
  void rest();
  /// Closes everything (end of the session).
  void close_all(ThreadState& self, profile::CloseReason reason);
  /// A thread ends: forgets it.
  void leave(ThreadState& self);
  /// The number of watches that can be open together.
  [[nodiscard]] std::uint32_t slots() const { return plan().slots; }
  /// Returns the running mean of a watch's cost, nanoseconds.
  [[nodiscard]] std::uint64_t mean_cost_ns() const { return mean_cost_ns_.load(std::memory_order_relaxed); }
  /// Adds to the cost of the watch that `event` belongs to.
  void charge(std::uint32_t event, std::uint64_t ns);
  /// True if `event` belongs to a watch of a line that the board suspected.
  [[nodiscard]] bool suspects(std::uint32_t event) const {
    return slot_[event / words_per_slot].suspected.load(std::memory_order_relaxed);
  }

 private:
  using WatchProgress = watch_policy::WatchProgress;
  static constexpr std::uint32_t words_unknown = UINT32_MAX;

  struct Slot {
    std::atomic<std::uint32_t> lock;
    std::atomic<std::uint32_t> watch;  // id; 0: idle
    std::atomic<std::uint64_t> cost_ns;
    std::atomic<std::uint64_t>
        interrupted_ns;  // what others lost while their watchpoints were moved; added to cost_ns at the end
    std::atomic<bool> suspected;
    WatchProgress own;              // of a watch of this process alone
    SharedWatch* shared = nullptr;  // of a common watch; else null
    SharedLine identity;
    std::uint64_t line = 0, opened_ns = 0;
    watch_policy::WordChoice choice;
    profile::LineState state;  // read before threads are armed
    bool has_state = false;
  };

  struct Threads {  // how many there are, how many of them are armed
    std::uint32_t live = 0, armed = 0;
  };

  static WatchProgress& progress(Slot& slot) { return slot.shared != nullptr ? slot.shared->progress : slot.own; }
  static const WatchProgress& progress(const Slot& slot) {
    return slot.shared != nullptr ? slot.shared->progress : slot.own;
  }
  [[nodiscard]] std::uint32_t first_event(const Slot& slot) const {
    return static_cast<std::uint32_t>(&slot - slot_) * words_per_slot;
  }
  /// The thread of this process with that number; null: it is gone, or another process's.
  static ThreadState* thread_of(std::uint32_t number);
  /// The number of the thread that the board has named; 0: none, or one that has ended.
  static std::uint32_t living_partner(const watch_policy::Suspicion& suspicion);
  static bool try_lock(Slot& slot);
  static void unlock(Slot& slot) { slot.lock.store(0, std::memory_order_release); }
  [[nodiscard]] bool brief(std::uint64_t horizon_ns) const { return horizon_ns < horizon_ns_; }
  void begin(Slot& slot, ThreadState& self, const WatchRequest& request, std::uint64_t horizon_ns);
  struct Armed {
    std::uint32_t candidates = 0, armed = 0;  // other threads that could be armed, and those that were
  };
  void write_open(Slot& slot, ThreadState& self, const WatchRequest& request, Threads threads,
                  std::uint64_t horizon_ns);
  Armed arm_others(Slot& slot, ThreadState& self, std::uint32_t partner);
  /// True if a thread's events are open during watches only.
  [[nodiscard]] static bool has_closed_events();
  void arm_self(Slot& slot, ThreadState& self, const watch_policy::SampledAccess& access);
  [[nodiscard]] bool armed_for(const Slot& slot, const ThreadState& thread) const;
  void restore_runner(Slot& slot, std::uint32_t runner);
  static void charge_interruptions(Slot& slot, ThreadState& self);
  // Watches that processes keep together (common_watches.cpp).
  bool claim_common(Slot& slot, const SharedLine& line, std::uint64_t now_ns);
  void publish_common(Slot& slot);
  Threads arm_elsewhere(Slot& slot, ThreadState& self, std::uint32_t partner);
  bool arm_remote(Slot& slot, profile::ThreadSlot& thread, std::uint64_t line);
  void restore_remote(Slot& slot, std::uint32_t runner);
  void disarm_elsewhere(Slot& slot, std::uint32_t id);
  void arm_unarmed(Slot& slot, ThreadState& self);
  void follow_one(Slot& slot, ThreadState& self, std::uint64_t now_ns);
  bool join(Slot& slot, ThreadState& self, std::uint64_t now_ns);
  void take_part(Slot& slot, ThreadState& self, std::uint32_t id);
  [[nodiscard]] static bool is_over(const Slot& slot, std::uint32_t id);
  static bool end_common(Slot& slot, std::uint32_t id);
  void end_if_over(Slot& slot, ThreadState& self, std::uint32_t id);
  void close(Slot& slot, ThreadState& self, profile::CloseReason reason);
  void correct(Slot& slot, ThreadState& self, std::uint32_t word, bool open);
  static bool may_watch(const ThreadState& thread, std::uint32_t event, std::uint64_t address);
  bool arm(Slot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode);
  bool arm_all(Slot& slot, ThreadState& thread);
  void set_mode(Slot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode);
  void disarm(Slot& slot, ThreadState& thread, std::uint32_t word);
  void disarm_all(Slot& slot);
  static void set_words(ThreadState& thread, std::uint32_t words);
  void moved(Slot& slot, ThreadState& thread, std::uint64_t took_ns, long result);
  void admit(ThreadState& self);
  [[nodiscard]] bool grants_all() const;
  long open_events(ThreadState& self);
  [[nodiscard]] watch_policy::SlotPlan plan() const { return plan_.load(std::memory_order_relaxed); }
  /// The slots that a thread can watch in, which may have got fewer registers than others.
  [[nodiscard]] watch_policy::SlotPlan plan_for(const ThreadState& self) const;

  std::uint32_t words_configured_ = 0;
  std::atomic<watch_policy::SlotPlan> plan_;  // smaller if the kernel does not grant all registers
  std::uint64_t horizon_ns_ = 0;
  std::atomic<std::uint64_t> mean_cost_ns_;
  std::atomic<std::uint32_t> words_granted_ = words_unknown;  // the most that the kernel has let a thread have
  ProcessFlag opening_;
  Slot slot_[watch_slots];
};

/// The process's.
WatchUnit& watch_unit();

/// Unique in the recording, > 0.
std::uint32_t new_watch_id();

}  // namespace crosstalk::in_target
