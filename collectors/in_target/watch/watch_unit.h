// SPDX-License-Identifier: Apache-2.0
// The watchpoint unit: watches a line in the threads of the process that can be armed, and records which
// threads access it, in the order of their accesses.
//
// The watch policy (collectors/watch_policy/) decides which samples begin a watch, on which words and for how long, and
// which threads are armed in which mode after a trap. This unit carries out its decisions, by parts of its own:
// admission.h which threads can be armed, arming.h and remote_arming.h their watchpoints, open_watches.h the slots and
// the end of a watch, watch_traps.h the traps.
//
// While any data breakpoint is enabled, `rep movs` and `rep stos` (memcpy(), the kernel's copies, its clearing of
// pages) run about four times slower. So a line without suspicion usually gets a brief watch. An alarm ends it if the
// next sample would come too late.
//
// Processes that share a line's memory watch it together, and the progress is common (common_watches.h). The
// thread that opens the watch arms threads of the other processes, too (remote_events.h). Another process
// joins the watch at the next trap or sample of one of its threads (followed_watches.h). It then arms its threads that
// the opener left out.
//
// Signal-safe. A slot changes under a try-lock. A thread that fails to get it after some tries leaves the change out.
#pragma once

#include <cstdint>

#include "collectors/in_target/core/thread_state.h"
#include "collectors/in_target/processes/cross_process_state.h"
#include "collectors/in_target/sys/try_lock.h"
#include "collectors/in_target/watch/admission.h"
#include "collectors/in_target/watch/open_watches.h"
#include "collectors/in_target/watch/watch_traps.h"
#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/sampled_access.h"
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

class WatchUnit {
 public:
  /// `words` debug registers, 0..4.
  void start(std::uint32_t words, std::uint64_t horizon_ns);
  /// Forgets all watches without touching any event (after fork).
  void forget() { watches_.forget(); }
  [[nodiscard]] bool usable() const { return slots() > 0; }
  /// The number of watches that can be open together.
  [[nodiscard]] std::uint32_t slots() const { return admission_.plan().slots; }

  /// See Admission. Called at each sample if there are other threads or shared memory.
  void attend(ThreadState& self) { admission_.attend(self, watches_.slots()); }
  /// See Admission. Called for a thread that may end before its first sample.
  void expect(ThreadState& self) { admission_.expect(self); }

  /// True if there is a slot for such a request of the calling thread now.
  [[nodiscard]] bool has_room(const ThreadState& self, bool suspected, std::uint64_t now_ns) const;
  /// Opens a watch for a sample, if a slot and descriptors are free. True if it did.
  bool open(ThreadState& self, const WatchRequest& request, std::uint64_t now_ns);
  /// A watchpoint of `self` fired. False: it was not (or no longer) one of ours to report.
  bool trapped(ThreadState& self, const WatchpointTrap& trap) { return take_trap(watches_, self, trap); }
  /// Looks at the watches that other processes opened or joined: joins them, moves the watchpoints of `self`, leaves
  /// those that are over. At each sample; costs nothing in a program that shares no memory.
  void follow(ThreadState& self, std::uint64_t now_ns);
  /// The alarm of `self` has rung: closes the watches that are past their deadlines.
  void alarmed(ThreadState& self, std::uint64_t now_ns);
  /// Rests: closes the events that threads keep open, except those of watches that are still open.
  void rest() { close_kept_events(watches_.slots()); }
  /// Closes our events on threads of other processes, which are opened again under other numbers.
  void renew_remote_events();

  // See OpenWatches.
  bool expire(ThreadState& self, std::uint64_t now_ns) { return watches_.expire(self, now_ns); }
  void close_all(ThreadState& self, profile::CloseReason reason) { watches_.close_all(self, reason); }
  [[nodiscard]] std::uint64_t mean_cost_ns() const { return watches_.mean_cost_ns(); }
  void charge(std::uint32_t event, std::uint64_t ns) { watches_.charge(event, ns); }
  [[nodiscard]] bool suspects(std::uint32_t event) const { return watches_.suspects(event); }

 private:
  bool claim(WatchSlot& slot, const WatchRequest& request, std::uint64_t now_ns);
  void begin(WatchSlot& slot, ThreadState& self, const WatchRequest& request, std::uint64_t horizon_ns);

  Admission admission_;
  OpenWatches watches_;
  std::uint64_t horizon_ns_ = 0;
  ProcessFlag opening_;
};

/// The process's.
WatchUnit& watch_unit();

/// Unique in the recording, > 0.
std::uint32_t new_watch_id();

}  // namespace crosstalk::in_target
