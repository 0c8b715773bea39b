// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/threads.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <atomic>
#include <cstring>

#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/regions/marked_regions.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sampling/presence.h"
#include "collectors/in_target/sampling/sampling.h"
#include "collectors/in_target/sync/measured_wait.h"
#include "collectors/in_target/sys/kernel_signals.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/found_table.h"
#include "collectors/in_target/watch/admission.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;

constinit std::atomic<std::uint64_t> begun_threads{0};

void reset_counters(profile::ThreadSlot& slot) {
  for (auto* counter : {&slot.lost_records, &slot.lost_bytes, &slot.samples, &slot.traps, &slot.handlers_ns,
                        &slot.switches_ns, &slot.switches, &slot.cpu_ns, &slot.handler_samples_ns}) {
    counter->store(0, std::memory_order_relaxed);
  }
}

// The lowest free slot: the recorder looks at those in use and a margin above them.
profile::ThreadSlot* claim_slot(const profile::ArenaView& arena, std::uint32_t& index) {
  const std::uint32_t count = arena.header->slot_count;
  for (std::uint32_t i = 0; i < count; ++i) {
    profile::ThreadSlot* slot = arena.slot(i);
    auto expected = static_cast<std::uint32_t>(profile::SlotState::free);
    if (slot->state.load(std::memory_order_relaxed) == expected &&
        slot->state.compare_exchange_strong(expected, static_cast<std::uint32_t>(profile::SlotState::claimed),
                                            std::memory_order_acq_rel)) {
      index = i;
      return slot;
    }
  }
  return nullptr;
}

void get_name(char (&name)[16]) { system_call(SYS_prctl, PR_GET_NAME, static_cast<char*>(name), 0, 0, 0); }

void write_start(ThreadState& self, std::uint64_t start_routine) {
  profile::ThreadStart record;
  record.header.type = profile::RecordType::thread_start;
  record.time_ns = monotonic_ns();
  record.pid = runtime().pid;
  record.tid = self.tid.load(std::memory_order_relaxed);
  record.stack_low = self.stack_low;
  record.stack_high = self.stack_high;
  record.thread_pointer = self.thread_pointer;
  get_name(record.name);
  append(self, &record, sizeof record, &start_routine, start_routine != 0 ? sizeof start_routine : 0);
}

// In a handler everything is blocked; then the next sample finds out.
bool blocks_traps() {
  std::uint64_t mask = 0;
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof mask);
  return (mask & bit_in_mask(SIGTRAP)) != 0;
}

ContextSwitches own_switches() {
  rusage usage{};
  system_call(SYS_getrusage, RUSAGE_THREAD, &usage);
  return {static_cast<std::uint64_t>(usage.ru_nvcsw), static_cast<std::uint64_t>(usage.ru_nivcsw)};
}

// Resets a state, which an earlier thread in the same place may have used.
void prepare_state(ThreadState& self, std::uint64_t stack_low, std::uint64_t stack_high, std::uint64_t thread_pointer) {
  self.stack_low = stack_low;
  self.stack_high = stack_high;
  self.thread_pointer = thread_pointer;
  self.begun_ms = static_cast<std::uint32_t>(monotonic_ns() / ns_per_ms);
  self.handler_stack = nullptr;
  self.creation_frame = self.creation_ns = 0;
  self.timer_number = 0;
  self.clock_event = {};
  self.memory.refused = false;
  self.memory.without_counter = false;
  self.memory.samples = self.memory.review_samples = 0;
  self.alarm_event = {};
  self.alarm_since_ns = self.alarm_until_ns = self.alarm_ns = 0;
  self.last_cpu_ns = thread_cpu_ns();
  self.cpu_before_ns = runtime().injected ? self.last_cpu_ns : 0;
  self.switches_before = runtime().injected ? own_switches() : ContextSwitches{};
  self.samples = 0;
  self.first_weight_ns = 0;
  self.one_in = 1;
  self.alone_from_ns = 0;
  self.ordinal = begun_threads.fetch_add(1, std::memory_order_relaxed);
  self.copying = self.kernel_slowdown = self.in_user = {};
  self.handler_ns = 0;
  self.review_samples = self.review_cpu_ns = self.review_handlers_ns = self.review_switches = 0;
  self.stray_traps = 0;
  self.blocks_traps = self.watch_tried = runtime().injected && blocks_traps();
  self.keeps_events = false;
  self.on_demand.store(0, std::memory_order_relaxed);
  self.recent_switches = self.recent_cpu_ns = 0;
  self.watch_events.store(0, std::memory_order_relaxed);
  const std::uint64_t seed = runtime().config.seed != 0 ? runtime().config.seed : monotonic_ns();
  self.random = random_state(seed, self.ordinal + 1);  // states are used again, ordinals are not
}

// The thread goes unobserved: all states or all slots are in use, or there is no memory for its state or its ring.
void give_up(ThreadState* self, profile::ThreadSlot* slot) {
  profile::ArenaHeader& header = *runtime().arena.header;
  const bool no_memory = slot != nullptr || (self == nullptr && registry().live() < max_threads);
  if (self != nullptr) {
    registry().remove(*self);
  }
  if (slot != nullptr) {
    slot->state.store(static_cast<std::uint32_t>(profile::SlotState::free), std::memory_order_release);
  }
  (no_memory ? header.threads_without_memory : header.threads_unobserved).fetch_add(1, std::memory_order_relaxed);
}

// Other processes may arm the thread once it has said how many words can be watched.
void prepare_watchpoints(ThreadState& self) {
  profile::ThreadWatchpoints& watchpoints = self.slot->watchpoints;
  self.watchpoints = &watchpoints;
  watchpoints.words.store(0, std::memory_order_relaxed);
  watchpoints.stack_low.store(self.stack_low, std::memory_order_relaxed);
  watchpoints.stack_high.store(self.stack_high, std::memory_order_relaxed);
  for (auto& watch : watchpoints.watch) {
    watch.store(0, std::memory_order_relaxed);
  }
  for (std::uint32_t event = 0; event < max_words; ++event) {
    watchpoints.event[event].holder.store(0, std::memory_order_relaxed);
    watchpoints.mode[event].store(static_cast<std::uint8_t>(WatchMode::off), std::memory_order_relaxed);
    watchpoints.armed_ns[event].store(0, std::memory_order_relaxed);
    watchpoints.armed_since_ns[event].store(0, std::memory_order_relaxed);
  }
}

}  // namespace

ThreadState* begin_thread(std::uint64_t stack_low, std::uint64_t stack_high, std::uint64_t thread_pointer,
                          std::uint64_t start_routine) {
  Runtime& r = runtime();
  const std::int32_t tid = kernel_thread_id();
  if (ThreadState* known = registry().find(tid); known != nullptr) {  // found by find_threads() first
    known->stack_low = stack_low;
    known->stack_high = stack_high;
    known->thread_pointer = thread_pointer;
    forget_found_thread(tid);
    write_start(*known, start_routine);
    return known;
  }
  ThreadState* self = registry().add(tid);
  std::uint32_t index = 0;
  profile::ThreadSlot* slot = self != nullptr ? claim_slot(r.arena, index) : nullptr;
  std::byte* const ring = slot != nullptr ? r.rings.ring(index) : nullptr;
  if (ring == nullptr) {
    give_up(self, slot);
    return nullptr;
  }
  prepare_state(*self, stack_low, stack_high, thread_pointer);
  self->slot = slot;
  self->number = index + 1;
  reset_counters(*slot);
  slot->pid.store(r.pid, std::memory_order_relaxed);
  slot->tid.store(tid, std::memory_order_relaxed);
  self->ring.attach(slot, ring, r.rings.ring_bytes());
  prepare_watchpoints(*self);
  begin_waits(*self);
  begin_regions(*self);
  slot->state.store(static_cast<std::uint32_t>(profile::SlotState::live), std::memory_order_release);
  write_start(*self, start_routine);
  self->phase.store(static_cast<std::uint32_t>(ThreadPhase::live), std::memory_order_release);
  forget_found_thread(tid);
  return self;
}

void forget_threads_begun() {
  constexpr unsigned far = 20;  // more threads than a process begins before it forks again
  begun_threads.store(static_cast<std::uint64_t>(kernel_process_id()) << far, std::memory_order_relaxed);
}

namespace {

// Ends what belongs to a thread in phase `ending`; its last record has its times.
void finish(ThreadState& thread, profile::ThreadEnd& record) {
  record.header.type = profile::RecordType::thread_end;
  record.time_ns = monotonic_ns();
  thread.slot->cpu_ns.store(record.cpu_ns, std::memory_order_relaxed);
  append(thread, &record, sizeof record, nullptr, 0);
  profile::ThreadSlot* slot = thread.slot;
  thread.ring.detach();
  thread.slot = nullptr;
  registry().remove(thread);
  slot->state.store(static_cast<std::uint32_t>(profile::SlotState::ended), std::memory_order_release);
}

}  // namespace

void charge_own_calls(ThreadState& self, std::uint64_t took_ns) {
  self.slot->handlers_ns.fetch_add(took_ns, std::memory_order_relaxed);
  runtime().budget.spend(took_ns);
}

void end_thread(ThreadState& self) {
  const std::uint64_t begin_ns = thread_cpu_ns();
  end_waits();
  end_regions(self);
  stop_clock(self);
  charge_presence(self);
  // A tick that is already pending finds the phase changed, and a stale one no state at all.
  self.phase.store(static_cast<std::uint32_t>(ThreadPhase::ending), std::memory_order_release);
  take_last_accesses(self);
  MemoryEvents::close(self);
  end_watching(self);
  profile::ThreadEnd record;
  record.cpu_ns = thread_cpu_ns() - self.cpu_before_ns;
  const ContextSwitches switches = own_switches();
  record.voluntary_switches = switches.voluntary - self.switches_before.voluntary;
  record.involuntary_switches = switches.involuntary - self.switches_before.involuntary;
  get_name(record.name);  // the recorder's looks come too late for a name that the thread had just before its end
  note_life(record.cpu_ns, record.voluntary_switches + record.involuntary_switches);
  charge_own_calls(self, thread_cpu_ns() - begin_ns);
  finish(self, record);
}

void end_lost_thread(ThreadState& thread, std::int32_t tid) {
  auto live = static_cast<std::uint32_t>(ThreadPhase::live);
  if (!thread.phase.compare_exchange_strong(live, static_cast<std::uint32_t>(ThreadPhase::ending))) {
    return;
  }
  if (thread.tid.load(std::memory_order_relaxed) != tid) {  // it had told after all, and the place is another's now
    thread.phase.store(static_cast<std::uint32_t>(ThreadPhase::live), std::memory_order_release);
    return;
  }
  stop_clock(thread);
  MemoryEvents::close(thread);
  end_watching(thread);
  profile::ThreadEnd record;
  record.cpu_ns = thread.slot->cpu_ns.load(std::memory_order_relaxed);
  finish(thread, record);
}

}  // namespace crosstalk::in_target
