// SPDX-License-Identifier: Apache-2.0
// The arena: one memory object that the recorder makes and every observed process maps. It holds the session's
// settings, a slot and a ring for each thread, and the data that processes exchange that share memory.
//
// The recorder makes it with memfd_create: it needs no /dev/shm, leaves nothing behind, and touching its pages cannot
// fault on a full file system. Targets open it as /proc/RECORDER/fd/N, named by the environment variable
// `arena_variable`, map the part before the rings and close it, so they keep no descriptor. A process maps the rings of
// its own threads only, as threads start (collectors/in_target/core/ring_memory.h), and the recorder maps the rings
// in use: 256 MiB would show in core dumps and fail under `ulimit -v`.
//
// Writers of each part:
//   ArenaHeader    the recorder before the start; `heartbeat_ns` and `state` by the recorder throughout;
//                  the counters behind them by targets (atomic adds); `notices` as UnobservedNotice says
//   ThreadSlot     claimed by a target thread with a CAS free -> claimed; `head` and what is above it are
//                  written by that thread only; `tail` by the recorder only
//                  `watchpoints` by observed processes, among themselves
//   the exchange   observed processes, among themselves (collectors/in_target/processes/cross_process_state.h); the
//                  recorder only makes it, all zero
//   ThreadRegions  behind the thread's ring; written by that thread only, read by the recorder (region_table.h)
//   a ring         bytes [tail, head) are the recorder's to read, the rest the thread's to write.
//                  head.store(release) after the bytes are written; the recorder loads it with acquire.
//                  tail.store(release) after the bytes are read; the thread loads it with acquire.
// `head` and `tail` count bytes from 0 and never wrap (64 bits); position = count % ring_bytes. A record
// never wraps: a `padding` record fills the end of the ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profile/memory_sampling.h"
#include "profile/region_table.h"
#include "profile/watch_settings.h"

namespace crosstalk::profile {

inline constexpr std::uint64_t arena_magic = 0x6b6c617473736f72;  // "rosstalk"
inline constexpr std::uint32_t arena_version = 25;
inline constexpr const char* arena_variable = "CROSSTALK_ARENA";
inline constexpr const char* arena_name = "crosstalk-arena";                 // in the mappings of processes
inline constexpr std::size_t cross_process_bytes = std::size_t{160} << 10U;  // a multiple of pages

enum class SessionState : std::uint32_t { running = 1, stopping = 2 };

enum class ClockKind : std::uint32_t {
  automatic = 0,
  posix = 1,  // POSIX thread CPU timer: no cost at context switches, no finer than the kernel's tick
  perf = 2,   // perf task-clock with sigtrap: any period, and a cost at each context switch
};

/// Settings of the user and costs that the recorder calibrated. Constant once targets run.
struct SessionConfig {
  std::uint64_t period_ns = 4'000'000;  // wanted CPU time between two samples of a thread
  double budget = 0.03;                 // fraction of thread CPU time that observing may take
  ClockKind clock = ClockKind::automatic;
  Method method = Method::watch;
  Partner partner = Partner::automatic;
  std::uint32_t watchpoints = 4;  // debug registers to use at most, 0..4
  std::uint32_t follow_children = 1;
  std::uint32_t lookahead = 1;            // 0: threads are not followed ahead of their samples
  std::uint64_t seed = 0;                 // of the target's random choices; 0: by time
  std::uint64_t heap_threshold = 0;       // bytes; smaller blocks are not tracked. 0: as the budget allows
  std::uint64_t horizon_ns = 20'000'000;  // how long a line is watched at most
  std::uint32_t stack_bytes = 4096;       // bytes of stack copied with a sample at most
  std::uint32_t stacks_per_s = 20;        // stacks copied a second and thread at most, samples'
  std::uint32_t board_slots = 4096;       // lines that the bulletin board remembers, see board_slots_least
  // Calibrated by the recorder on this machine before the start, nanoseconds:
  std::uint32_t signal_cost_ns = 2000;        // delivery of and return from one signal
  std::uint32_t trap_cost_ns = 5000;          // one watchpoint trap without its handler
  std::uint32_t switch_cost_ns = 4000;        // extra time of a context switch with a perf task clock
  std::uint32_t watch_switch_cost_ns = 600;   // extra time of one with one armed watchpoint
  std::uint32_t presence_cost_ns = 800;       // extra time of one with open watchpoints, none armed
  std::uint32_t perf_sample_cost_ns = 15000;  // one task-clock sample without its handler
  std::uint32_t past_presence_cost_ns = 80;   // extra time of one after watchpoints were closed
  // While watchpoints are armed, the processor copies without its fast strings. The first value is the extra time of
  // the program's copies, in thousandths; the second the extra picoseconds for each byte that it or the kernel copies.
  std::uint32_t armed_copy_permille = 8000;
  std::uint32_t armed_byte_ps = 300;
  std::uint32_t transfer_call_ns = 400;  // a system call that transfers a byte
  // Kernel features that the recorder found to be allowed (collectors/facilities):
  std::uint32_t perf_allowed = 0;         // 1: perf_event_open works on own threads
  std::uint32_t watchpoints_allowed = 0;  // 1: breakpoint events with sigtrap work
  std::uint32_t timer_allowed = 1;
  // 1: measures how long threads wait for each other (collectors/in_target/sync/; from outside,
  // collectors/observer/wait_sampler.h). Off by default: the wrappers of lock functions look at a lock before they take
  // it, and under permanent contention that changes which thread gets it next.
  std::uint32_t measure_waits = 0;
  // 1: watchpoints are pointed at addresses that nobody accesses, for a test (collectors/breakpoint_address.h).
  std::uint32_t dead_watchpoints = 0;
  std::uint32_t reserved[1] = {};
};

enum class SlotState : std::uint32_t {
  free = 0,
  claimed = 1,  // by a thread that has not yet written its ThreadStart
  live = 2,
  ended = 3,  // the thread is gone; the recorder drains the ring and frees the slot
};

/// A thread's watchpoint events. Observed processes that share memory arm each other's threads, so this table records
/// which process holds each event's descriptor (collectors/in_target/processes/remote_events.h).
struct alignas(cache_line) ThreadWatchpoints {
  static constexpr std::uint32_t max_events = 4;
  struct Event {
    std::atomic<std::uint64_t> holder;  // pid << 32 | descriptor; 0: the event is not open
    std::atomic<std::uint64_t> id;      // the kernel's event id, which reveals a reused descriptor
  };
  Event event[max_events];
  std::atomic<std::uint64_t> address[max_events];  // the last setting of each
  std::atomic<std::uint32_t> watch[2];             // the common watch that each pair of events was armed for; 0: none
  std::atomic<std::uint32_t> words;                // events that the thread can have; 0: it must not be armed
  std::atomic<std::uint8_t> mode[max_events];      // collectors/in_target/core/thread_state.h, WatchMode
  std::atomic<std::uint64_t> stack_low, stack_high;
  // Written by the thread that moves the event (collectors/in_target/core/armed_time.h), CLOCK_MONOTONIC ns: the armed
  // time up to the last time that the event was switched off, and the time since which it is armed (0: it is not).
  std::atomic<std::uint64_t> armed_ns[max_events];
  std::atomic<std::uint64_t> armed_since_ns[max_events];
};

struct alignas(cache_line) ThreadSlot {
  std::atomic<std::uint32_t> state;  // SlotState
  std::atomic<std::int32_t> pid;
  std::atomic<std::int32_t> tid;
  std::uint32_t generation;                 // the recorder adds 1 when it frees the slot
  std::atomic<std::uint64_t> lost_records;  // ring full
  std::atomic<std::uint64_t> lost_bytes;
  std::atomic<std::uint64_t> samples;
  std::atomic<std::uint64_t> traps;
  // Cost of observation in this thread, nanoseconds of its CPU time:
  alignas(cache_line) std::atomic<std::uint64_t> handlers_ns;  // handlers, deliveries, arming
  std::atomic<std::uint64_t> switches_ns;                      // context switches x calibrated cost
  std::atomic<std::uint64_t> switches;                         // context switches so far
  std::atomic<std::uint64_t> cpu_ns;                           // thread CPU time at the last sample
  std::atomic<std::uint64_t> handler_samples_ns;               // of handlers_ns: sample handlers' own time, no arming
  std::atomic<std::uint32_t> clock;                            // ClockKind in use
  std::atomic<std::uint32_t> period_us;                        // period in use
  std::atomic<std::uint64_t> head;                             // bytes published by the thread
  std::atomic<std::uint32_t> marks_regions;  // 1: its ThreadRegions are in use; else nobody touches them
  std::atomic<std::uint32_t> from_outside;   // 1: an observer has the slot until it says that the thread has ended
  ThreadWatchpoints watchpoints;
  alignas(cache_line) std::atomic<std::uint64_t> tail;  // bytes consumed by the recorder
};

static_assert(sizeof(ThreadSlot) == 6 * cache_line);

/// Reasons why a program could not be observed.
enum class Unobserved : std::uint32_t {
  statically_linked = 1,
  other_class = 2,    // 32 bits
  other_machine = 3,  // run by an emulator
  other_loader = 4,   // another C library
  sanitizer = 5,      // its runtime has to be the first library
  privileged = 6,     // set-user-ID and the like: the loader ignores LD_PRELOAD
  pid_namespace = 7,  // its process ids mean nothing outside
  out_of_reach = 8,   // it cannot open the arena: of another user namespace, without /proc
};

enum class NoticeState : std::uint32_t { free = 0, claimed = 1, ready = 2 };

/// A program that goes unobserved, reported by the process that executes it (also a vfork child, which has no ring) or
/// by the program itself. A target moves a notice from free to claimed by compare-and-swap, fills it in and makes it
/// ready; the recorder copies it and frees it. A target that finds none free reports nothing.
struct UnobservedNotice {
  std::atomic<std::uint32_t> state;  // NoticeState
  Unobserved reason = Unobserved::statically_linked;
  std::int32_t pid = 0;         // of the process that executes it; 0: not known out here
  std::uint32_t withdrawn = 0;  // 1: the exec announced by an earlier notice has failed
  std::uint64_t time_ns = 0;
  char detail[104] = {};  // the loader or library that is the reason; empty: none
  char program[384] = {};
};
static_assert(sizeof(UnobservedNotice) == 512);
inline constexpr std::uint32_t notice_count = 32;

/// Probes of lines without a result. Targets add, the recorder reads.
struct ProbeCounts {
  std::atomic<std::uint64_t> unreadable;      // the line's page was not there, or no longer
  std::atomic<std::uint64_t> in_handlers;     // others stood in handlers of ours, too
  std::atomic<std::uint64_t> beside_another;  // another thread probed at the same time
  std::atomic<std::uint64_t> went_on;         // from outside: the thread slept, or ran on another processor
};

struct ArenaHeader {
  std::uint64_t magic = arena_magic;
  std::uint32_t version = arena_version;
  std::uint32_t header_bytes = 0;  // sizeof(ArenaHeader)
  std::uint64_t total_bytes = 0;
  std::uint32_t slot_count = 0;
  std::uint32_t ring_bytes = 0;            // of one ring, a power of two
  std::uint64_t cross_process_offset = 0;  // cross_process_bytes bytes
  std::uint64_t slots_offset = 0;          // ThreadSlot[slot_count]
  std::uint64_t rings_offset = 0;          // page aligned; ring i at + i * ring_stride(ring_bytes)
  std::int32_t recorder_pid = 0;
  std::uint32_t reserved = 0;
  std::uint64_t pid_namespace = 0;  // the recorder's: inode of /proc/self/ns/pid; 0: not known
  SessionConfig config;
  MemorySampling memory;
  alignas(cache_line) std::atomic<std::uint32_t> state;       // SessionState
  std::atomic<std::uint64_t> heartbeat_ns;                    // CLOCK_MONOTONIC of the recorder's last drain
  alignas(cache_line) std::atomic<std::uint32_t> next_watch;  // last watch id given out
  std::atomic<std::uint32_t> threads_unobserved;              // no slot was free
  std::atomic<std::uint32_t> threads_without_memory;          // their process could not map what they need
  std::atomic<std::uint32_t> processes_without_room;          // a limit of their memory left none for us
  std::atomic<std::uint64_t> events_seen_ns;                  // when a process last had an event open; CLOCK_MONOTONIC
  MemoryCounts memory_counts;
  ProbeCounts probe_counts;
  alignas(cache_line) UnobservedNotice notices[notice_count];
  RegionName region_names[most_region_names];  // number n is [n - 1]
};

/// Distance between rings, bytes. The regions of a ring's thread follow the ring.
[[nodiscard]] constexpr std::uint64_t ring_stride(std::uint32_t ring_bytes) {
  return std::uint64_t{ring_bytes} + thread_regions_bytes;
}

}  // namespace crosstalk::profile
