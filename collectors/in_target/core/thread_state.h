// SPDX-License-Identifier: Apache-2.0
// The state of one observed thread, and the registry that finds it by its kernel id.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectors/in_target/core/armed_cost.h"
#include "collectors/in_target/sys/event_ring.h"
#include "collectors/in_target/sys/handler_stack.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/memory_samples/event_pace.h"
#include "collectors/watch_policy/runs.h"
#include "collectors/watch_policy/words.h"
#include "profile/arena.h"
#include "profile/ring.h"

namespace crosstalk::in_target {

inline constexpr std::uint32_t max_threads = 4096;  // observed at a time, in one process
inline constexpr std::uint32_t max_words = watch_policy::most_registers;

static_assert(max_words == profile::ThreadWatchpoints::max_events);

/// A thread's events that sample its memory accesses (sampling/memory_events.h).
struct ThreadMemoryEvents {
  struct Event {
    OwnedEvent leader, event;  // the first only if the event needs one
    collectors::EventPace pace;
  };
  Event event[profile::most_memory_events];
  EventRing ring;                // of all of them
  std::uint32_t count = 0;       // that are open; 0: the thread is sampled by its clock alone
  std::uint64_t lost = 0;        // records that our module's ring had no room for, as it said last
  bool refused = false;          // the refusal was reported
  bool without_counter = false;  // one of them never had one, which is entered in the arena
  std::uint64_t samples = 0, review_samples = 0;
};

enum class ThreadPhase : std::uint32_t { free = 0, starting = 1, live = 2, ending = 3 };

/// A thread's usage so far, as getrusage(2) has it.
struct ThreadUsage {
  std::uint64_t switches = 0;  // context switches, of both kinds
  std::uint64_t faults = 0;    // page faults without input or output
  std::uint64_t user_ns = 0, kernel_ns = 0;
};

struct ContextSwitches {
  std::uint64_t voluntary = 0, involuntary = 0;
};

/// Fields without a word are written by the thread itself only (its handlers included).
struct ThreadState {
  std::atomic<std::uint32_t> phase;  // ThreadPhase
  std::atomic<std::int32_t> tid;
  std::uint32_t index = 0;  // in the registry; never changes
  profile::ThreadSlot* slot = nullptr;
  std::uint32_t begun_ms = 0;  // CLOCK_MONOTONIC; set before its phase says that it lives
  std::uint32_t number = 0;    // of its ring: index of `slot` in the arena + 1. Other processes know the thread by it
  profile::RingWriter ring;
  std::uint64_t stack_low = 0, stack_high = 0, thread_pointer = 0;
  HandlerStack* handler_stack = nullptr;  // null: its handlers run where the kernel puts them

  // its latest record of a thread creation
  std::uint64_t creation_frame = 0, creation_ns = 0;

  // clock
  profile::ClockKind clock = profile::ClockKind::automatic;
  std::int32_t timer_number = 0;  // POSIX timer id + 1; 0: none
  OwnedEvent clock_event;
  std::uint64_t period_ns = 0;
  std::uint64_t cpu_before_ns = 0;  // CPU time before the library was brought into its process, and
  ContextSwitches switches_before;
  std::uint64_t last_cpu_ns = 0;      // thread CPU time at the previous sample
  std::uint64_t first_weight_ns = 0;  // weight of the first sample
  std::uint64_t one_in = 1;           // how many threads it was drawn from: its samples stand for all of them, up to
  std::uint64_t alone_from_ns = 0;    // this CPU time of its (watch_policy/thread_clock.h)
  std::uint64_t ordinal = 0;          // how many threads of the process came before
  std::uint64_t samples = 0;
  std::uint32_t handler_ns = 0;   // of the previous sample, watching apart
  std::uint64_t next_review = 0;  // sample number at which clock and period are reviewed
  std::uint64_t review_samples = 0, review_cpu_ns = 0, review_handlers_ns = 0, review_switches = 0;

  ThreadMemoryEvents memory;

  // time in the kernel that no register shows (sampling/fault_time.h)
  bool faults_often = false;
  std::uint64_t faults_seen = 0, kernel_seen_ns = 0;  // page faults and time in the kernel, up to its previous sample
  std::int64_t kernel_owed_ns = 0;                    // of that time, what no sample has told of yet

  // presence
  ThreadUsage charged;  // at the last charge, as the next two
  std::uint64_t charged_ns = 0;
  std::array<std::uint64_t, max_words> charged_armed{};
  RunningMean copying;          // of its samples in user mode, the part in a string instruction
  RunningMean kernel_slowdown;  // by what part armed watchpoints make the call longer, from samples in the kernel
  RunningMean in_user;          // of its samples, the part in user mode
  std::uint64_t charged_alarm_ns = 0;

  // watchpoints. Events are touched by other threads' handlers too.
  profile::ThreadWatchpoints* watchpoints = nullptr;  // in its slot, also after its end; null: it never had one
  OwnedEvent watch_event[max_words];
  std::atomic<std::uint32_t> watch_events;  // how many of watch_event it has; 0: cannot be watched
  std::atomic<std::uint8_t> on_demand;      // a bit for each event that is open during a watch only (watch_events.h)
  std::uint32_t stray_traps = 0;            // of no open watch, in a row
  OwnedEvent alarm_event;                   // ends the brief watches that this thread opens
  std::uint64_t alarm_since_ns = 0;         // since when it is set; 0: it is not
  std::uint64_t alarm_until_ns = 0;         // when it would ring if the thread ran all the time
  std::uint64_t alarm_ns = 0;               // for how long it was set, before that
  bool watch_tried = false;
  bool blocks_traps = false;  // if masks are left alone: it has the trap signal blocked, so it is not watched
  bool keeps_events = false;  // so it should be; on_demand follows between two watches
  std::uint64_t recent_switches = 0, recent_cpu_ns = 0;
  std::uint64_t random = 0;
};

/// Static storage, zero until used, for some threads; memory for more is mapped as they come, and kept for threads to
/// come. Signal-safe throughout.
class Registry {
 public:
  /// The state of a kernel thread; null when it is not observed.
  ThreadState* find(std::int32_t tid);
  /// A fresh state in phase `starting`; null when all are in use, or there is no memory for one.
  ThreadState* add(std::int32_t tid);
  void remove(ThreadState& thread);
  /// After fork: forgets all.
  void clear();
  /// States are at [0, extent()); look at their phase.
  [[nodiscard]] std::uint32_t extent() const { return extent_.load(std::memory_order_acquire); }
  ThreadState& at(std::uint32_t index) {
    ThreadState* const chunk =
        index < chunk_threads ? first_ : more_[index / chunk_threads - 1].load(std::memory_order_acquire);
    return chunk[index % chunk_threads];
  }
  [[nodiscard]] std::uint32_t live() const { return live_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t chunk_threads = 16;
  static constexpr std::uint32_t table_size = 4 * max_threads;
  static constexpr std::uint64_t tombstone = 1;
  static constexpr std::uint32_t probe_limit = 64;  // the table is at most a quarter full; tombstones are reused
  static std::uint32_t hash(std::int32_t tid) { return (static_cast<std::uint32_t>(tid) * 2654435761U) % table_size; }
  std::atomic<std::uint64_t> table_[table_size];  // tid << 32 | index << 1 | 0, or 0 (empty), or tombstone
  bool provide(std::uint32_t index);

  ThreadState first_[chunk_threads];
  std::atomic<ThreadState*> more_[max_threads / chunk_threads - 1];
  std::atomic<std::uint32_t> extent_;
  std::atomic<std::uint32_t> live_;
};

}  // namespace crosstalk::in_target
