// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/watch_unit.h"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/trap_record.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_messages.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint32_t lock_patience = 200;
constexpr std::uint64_t first_cost_guess_ns = 150'000;

constinit WatchUnit the_unit;

}  // namespace

std::uint32_t new_watch_id() { return runtime().arena.header->next_watch.fetch_add(1, std::memory_order_relaxed) + 1; }

WatchUnit& watch_unit() { return the_unit; }

void WatchUnit::start(std::uint32_t words, std::uint64_t horizon_ns) {
  words_configured_ = words;
  plan_.store(watch_policy::SlotPlan::of(words), std::memory_order_relaxed);
  horizon_ns_ = horizon_ns;
  mean_cost_ns_.store(first_cost_guess_ns, std::memory_order_relaxed);
}

void WatchUnit::forget() {
  for (Slot& slot : slot_) {
    slot.lock.store(0, std::memory_order_relaxed);
    slot.watch.store(0, std::memory_order_relaxed);
    slot.shared = nullptr;
  }
}

ThreadState* WatchUnit::thread_of(std::uint32_t number) {
  const Runtime& r = runtime();
  if (number == 0 || number > r.slot_count) {
    return nullptr;
  }
  const profile::ThreadSlot& slot = *r.arena.slot(number - 1);
  return slot.pid.load(std::memory_order_relaxed) == r.pid ? registry().find(slot.tid.load(std::memory_order_relaxed))
                                                           : nullptr;
}

// A number that was published before its thread began belongs to an earlier thread, which has ended.
std::uint32_t WatchUnit::living_partner(const watch_policy::Suspicion& suspicion) {
  const ThreadState* const thread = thread_of(suspicion.partner.thread);
  const bool began_later = thread != nullptr && watch_policy::is_before_ms(suspicion.partner.time_ms, thread->begun_ms);
  return began_later ? 0 : suspicion.partner.thread;
}

bool WatchUnit::try_lock(Slot& slot) {
  for (std::uint32_t i = 0; i < lock_patience; ++i) {
    std::uint32_t free = 0;
    if (slot.lock.compare_exchange_weak(free, 1, std::memory_order_acquire)) {
      return true;
    }
    __builtin_ia32_pause();
  }
  return false;
}

// Opens the events that the kernel grants the calling thread, and keeps as many as fill slots: a watch without
// registers would see nothing, which would look like a watch without accesses. -EAGAIN: not known now.
long WatchUnit::open_events(ThreadState& self) {
  const std::uint32_t wanted = watch_policy::SlotPlan::of(words_configured_).registers;
  std::uint32_t opened = 0;
  long error = 0;
  while (opened < wanted && error == 0) {
    error = keep_events(self, opened, 1);
    opened += error == 0 ? 1 : 0;
  }
  if (error == -EAGAIN) {
    if (!has_spare_numbers()) {
      descriptors_scarce();
    }
    return error;
  }
  const std::uint32_t words = watch_policy::SlotPlan::of(opened).registers;
  if (opened < wanted) {
    watch_events_missing(error, opened);
    forgo_events(self, words, opened - words);
  }
  return words;
}

bool WatchUnit::grants_all() const {
  return words_granted_.load(std::memory_order_relaxed) == watch_policy::SlotPlan::of(words_configured_).registers;
}

// A thread may get fewer debug registers than others: a debugger may hold some of one thread only. Until one thread has
// got all of them, each finds out by itself. After that the others assume that they can have them, too, and learn
// otherwise when they are armed.
void WatchUnit::admit(ThreadState& self) {
  const std::uint32_t most = words_granted_.load(std::memory_order_relaxed);
  self.watch_tried = true;
  if (grants_all()) {
    part_with_events(self, 0, most);
    set_words(self, most);
    return;
  }
  const long words = open_events(self);
  if (words < 0) {
    self.watch_tried = false;  // the next sample tries again
    return;
  }
  const auto granted = static_cast<std::uint32_t>(words);
  if (most == words_unknown || granted > most) {
    words_granted_.store(granted, std::memory_order_relaxed);
    plan_.store(watch_policy::SlotPlan::of(granted), std::memory_order_relaxed);
  }
  self.keeps_events = true;
  set_words(self, granted);
}

void WatchUnit::set_words(ThreadState& thread, std::uint32_t words) {
  thread.watch_events.store(words, std::memory_order_seq_cst);
  if (thread.watchpoints != nullptr) {
    thread.watchpoints->words.store(words, std::memory_order_seq_cst);
  }
}

void WatchUnit::expect(ThreadState& self) {
  if (usable() && !self.watch_tried && grants_all()) {
    admit(self);
  }
}

void WatchUnit::attend(ThreadState& self) {
  if (words_configured_ == 0) {
    return;
  }
  if (!self.watch_tried) {
    admit(self);
  }
  const std::uint32_t words = self.watch_events.load(std::memory_order_relaxed);
  const std::uint32_t all = (1U << words) - 1;
  const std::uint32_t wanted = self.keeps_events ? 0 : all;
  for (std::uint32_t i = 0; i < plan().slots && self.on_demand.load(std::memory_order_relaxed) != wanted; ++i) {
    Slot& slot = slot_[i];
    const std::uint32_t first = first_event(slot);
    if (first >= words || slot.watch.load(std::memory_order_relaxed) != 0 || !try_lock(slot)) {
      continue;
    }
    if (slot.watch.load(std::memory_order_acquire) == 0) {
      const std::uint32_t count = words - first < words_per_slot ? words - first : words_per_slot;
      if (!self.keeps_events) {
        part_with_events(self, first, count);
      } else if (keep_events(self, first, count) < 0) {
        self.keeps_events = false;
      }
    }
    unlock(slot);
  }
}

// Our handler's own frames may lie on a thread's stack below its present use, and before 5.19 the kernel kills a thread
// that hits a watchpoint with SIGTRAP blocked.
bool WatchUnit::may_watch(const ThreadState& thread, std::uint32_t event, std::uint64_t address) {
  return event < thread.watch_events.load(std::memory_order_acquire) &&
         (address < thread.stack_low || address >= thread.stack_high);
}

// Arms a thread for a watch that is being set up; opens an event if necessary. False: the thread cannot be armed for
// it.
bool WatchUnit::arm(Slot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode) {
  const std::uint32_t event = first_event(slot) + word;
  const profile::WatchWord& piece = slot.choice.word[word];
  const std::uint64_t address = slot.line + piece.offset;
  if (!may_watch(thread, event, address)) {
    return false;
  }
  thread.watchpoints->watch[&slot - slot_].store(slot.watch.load(std::memory_order_relaxed), std::memory_order_seq_cst);
  const std::uint64_t begin = monotonic_ns();
  const long result = demand_event(thread, event, {address, piece.length, mode});
  moved(slot, thread, monotonic_ns() - begin, result);
  return result >= 0;
}

// All words of the watch, or none: a thread that is armed for a part of it would look as if it had left the rest alone.
bool WatchUnit::arm_all(Slot& slot, ThreadState& thread) {
  std::uint32_t armed = 0;
  while (armed < slot.choice.words && arm(slot, thread, armed, WatchMode::read_write)) {
    ++armed;
  }
  if (armed == slot.choice.words) {
    return true;
  }
  for (std::uint32_t w = 0; w < armed; ++w) {
    disarm(slot, thread, w);
  }
  std::uint32_t id = slot.watch.load(std::memory_order_relaxed);
  thread.watchpoints->watch[&slot - slot_].compare_exchange_strong(id, 0, std::memory_order_seq_cst);
  return false;
}

void WatchUnit::set_mode(Slot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode) {
  const std::uint32_t event = first_event(slot) + word;
  const profile::WatchWord& piece = slot.choice.word[word];
  const std::uint64_t address = slot.line + piece.offset;
  if (!may_watch(thread, event, address)) {
    return;
  }
  const std::uint64_t begin = monotonic_ns();
  const long result = set_event(thread, event, {address, piece.length, mode});
  moved(slot, thread, monotonic_ns() - begin, result);
}

void WatchUnit::disarm(Slot& slot, ThreadState& thread, std::uint32_t word) {
  const std::uint64_t begin = monotonic_ns();
  const long result = dismiss_event(thread, first_event(slot) + word);
  moved(slot, thread, monotonic_ns() - begin, result);
}

void WatchUnit::moved(Slot& slot, ThreadState& thread, std::uint64_t took_ns, long result) {
  slot.interrupted_ns.fetch_add(lost_by_interruption(took_ns), std::memory_order_relaxed);
  const bool kept = thread.on_demand.load(std::memory_order_relaxed) == 0;
  if (kept && (result == -EBADF || result == -ENOTTY)) {  // the target closed our descriptors
    set_words(thread, 0);
    descriptors_closed();
  }
}

watch_policy::SlotPlan WatchUnit::plan_for(const ThreadState& self) const {
  const std::uint32_t own = self.watch_events.load(std::memory_order_relaxed);
  const watch_policy::SlotPlan all = plan();
  return own < all.registers ? watch_policy::SlotPlan::of(own) : all;
}

bool WatchUnit::has_room(const ThreadState& self, bool suspected, std::uint64_t now_ns) const {
  const watch_policy::SlotPlan slots = plan_for(self);
  for (std::uint32_t i = slots.first(suspected); i < slots.last(suspected); ++i) {
    if (slot_[i].watch.load(std::memory_order_relaxed) == 0 || progress(slot_[i]).expired(now_ns)) {
      return true;
    }
  }
  return false;
}

// By the process that has opened the watch, or another thread of this one.
bool WatchUnit::armed_for(const Slot& slot, const ThreadState& thread) const {
  return slot.shared != nullptr && thread.watchpoints->watch[&slot - slot_].load(std::memory_order_seq_cst) ==
                                       slot.watch.load(std::memory_order_relaxed);
}

// `partner`: the number of the thread to arm first; 0: none.
WatchUnit::Armed WatchUnit::arm_others(Slot& slot, ThreadState& self, std::uint32_t partner) {
  Registry& threads = registry();
  const std::uint32_t extent = threads.extent();
  const auto can_be_armed = [&](const ThreadState& thread) {
    return &thread != &self && thread.watch_events.load(std::memory_order_acquire) != 0 && !armed_for(slot, thread);
  };
  std::uint32_t armed = 0, gone = 0;
  const auto arm_one = [&](ThreadState& thread) {
    if (arm_all(slot, thread)) {
      ++armed;
    } else if (!lives(thread)) {
      ++gone;  // it accesses nothing
    }
  };
  std::uint32_t candidates = 0;
  for (std::uint32_t i = 0; i < extent; ++i) {
    candidates += can_be_armed(threads.at(i)) ? 1 : 0;
  }
  ThreadState* const first = thread_of(partner);
  const bool has_partner = first != nullptr && can_be_armed(*first);
  if (has_partner) {
    arm_one(*first);
  }
  watch_policy::ArmedDraw draw(candidates, has_partner);
  for (std::uint32_t i = 0; i < extent && !draw.complete(); ++i) {
    ThreadState& thread = threads.at(i);
    if ((!has_partner || &thread != first) && can_be_armed(thread) && draw.take(self.random)) {
      arm_one(thread);
    }
  }
  return {candidates - gone, armed};
}

bool WatchUnit::has_closed_events() {
  Registry& threads = registry();
  const std::uint32_t extent = threads.extent();
  for (std::uint32_t i = 0; i < extent; ++i) {
    const ThreadState& thread = threads.at(i);
    if (thread.watch_events.load(std::memory_order_relaxed) != 0 &&
        thread.on_demand.load(std::memory_order_relaxed) != 0) {
      return true;
    }
  }
  return false;
}

void WatchUnit::arm_self(Slot& slot, ThreadState& self, const watch_policy::SampledAccess& access) {
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    arm(slot, self, w,
        watch_policy::first_mode(access, w));  // even if it is off: it is needed when the line has come back
  }
}

bool WatchUnit::open(ThreadState& self, const WatchRequest& request, std::uint64_t now_ns) {
  if (!has_hidden_numbers()) {
    return false;  // the target has changed its limit: a watch that nobody is armed for would find nothing
  }
  if (!has_spare_numbers()) {
    descriptors_scarce();
    return false;
  }
  // Two threads that open events at the same time are in each other's way (sys/hidden_numbers.h): a watch that is
  // opened beside another one would miss threads.
  const TryLock opens(opening_, runtime().pid);
  if (!opens.held() && has_closed_events()) {
    return false;
  }
  const std::uint64_t begin_ns = thread_cpu_ns();
  const watch_policy::SlotPlan slots = plan_for(self);
  for (std::uint32_t i = slots.first(request.suspected); i < slots.last(request.suspected); ++i) {
    Slot& slot = slot_[i];
    if (slot.watch.load(std::memory_order_relaxed) != 0 || !try_lock(slot)) {
      continue;
    }
    slot.cost_ns.store(0, std::memory_order_relaxed);
    const bool free = slot.watch.load(std::memory_order_acquire) == 0;
    if (!free || (request.shared.others && !claim_common(slot, request.shared, now_ns))) {
      unlock(slot);
      continue;
    }
    if (!request.shared.others) {
      slot.shared = nullptr;
    }
    const std::uint64_t horizon_ns = watch_policy::choose_horizon(request.suspected, horizon_ns_, self.random);
    begin(slot, self, request, horizon_ns);
    slot.has_state = read_state(slot.line, slot.state);
    // Arms this thread first: another thread may take the line while the others are armed, and then changes this one's
    // mode.
    arm_self(slot, self, request.access);
    const std::uint32_t partner = request.suspected ? living_partner(request.suspicion) : 0;
    Threads threads;
    if (slot.shared != nullptr) {
      threads = arm_elsewhere(slot, self, partner);
    }
    const Armed here = arm_others(slot, self, partner);
    threads.armed += here.armed;
    threads.live += 1 + here.candidates;
    if (brief(horizon_ns)) {
      set_alarm(self, horizon_ns);
    }
    slot.cost_ns.fetch_add(thread_cpu_ns() - begin_ns, std::memory_order_relaxed);
    write_open(slot, self, request, threads, horizon_ns);
    return true;
  }
  return false;
}

// Called with the lock held, and unlocked by write_open().
void WatchUnit::begin(Slot& slot, ThreadState& self, const WatchRequest& request, std::uint64_t horizon_ns) {
  const profile::Sample& sample = *request.sample;
  slot.line = sample.address & ~(static_cast<std::uint64_t>(profile::cache_line) - 1);
  slot.identity = request.shared;
  slot.choice =
      watch_policy::choose_words(request.access, request.suspicion, plan_for(self).registers, next_random(self.random));
  slot.interrupted_ns.store(0, std::memory_order_relaxed);
  slot.suspected.store(request.suspected, std::memory_order_relaxed);
  slot.opened_ns = monotonic_ns();
  progress(slot).begin(self.number, request.access, slot.opened_ns + horizon_ns);
  slot.watch.store(new_watch_id(), std::memory_order_release);
  if (slot.shared != nullptr) {
    publish_common(slot);
  }
}

void WatchUnit::write_open(Slot& slot, ThreadState& self, const WatchRequest& request, Threads threads,
                           std::uint64_t horizon_ns) {
  profile::WatchOpen record;
  record.header.type = profile::RecordType::watch_open;
  record.time_ns = request.sample->time_ns;
  record.line = slot.line;
  record.watch = slot.watch.load(std::memory_order_relaxed);
  record.words = slot.choice.words;
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    record.word[w] = slot.choice.word[w];
  }
  record.threads = threads.live;
  record.armed = threads.armed;
  record.suspected = request.suspected ? 1 : 0;
  record.horizon_ns = horizon_ns;
  record.state = slot.state;
  record.has_state = slot.has_state ? 1 : 0;
  unlock(slot);
  append(self, &record, sizeof record, nullptr, 0);
  request.sample->watch = record.watch;
  request.sample->flags |= profile::sample_armed;
}

// But for threads that another process has armed for the next watch by now.
void WatchUnit::disarm_all(Slot& slot) {
  const std::uint32_t extent = registry().extent();
  for (std::uint32_t i = 0; i < extent; ++i) {
    ThreadState& thread = registry().at(i);
    if (thread.watchpoints == nullptr) {
      continue;
    }
    std::uint32_t id = slot.watch.load(std::memory_order_relaxed);
    const std::uint32_t armed_for = thread.watchpoints->watch[&slot - slot_].load(std::memory_order_seq_cst);
    if (armed_for != id && armed_for != 0) {
      continue;
    }
    for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
      if (in_use(thread, first_event(slot) + w)) {
        disarm(slot, thread, w);
      }
    }
    thread.watchpoints->watch[&slot - slot_].compare_exchange_strong(id, 0, std::memory_order_seq_cst);
  }
}

// Called with the slot's lock held. If processes keep a watch together, the one that ends it records the end.
void WatchUnit::close(Slot& slot, ThreadState& self, profile::CloseReason reason) {
  profile::WatchClose record;
  record.header.type = profile::RecordType::watch_close;
  record.time_ns = monotonic_ns();
  record.watch = slot.watch.load(std::memory_order_relaxed);
  record.reason = reason;
  record.traps = progress(slot).traps();
  const bool exchanged = progress(slot).exchanged();
  const bool ours = slot.shared == nullptr || end_common(slot, record.watch);
  disarm_all(slot);
  if (slot.shared != nullptr) {
    if (ours) {
      disarm_elsewhere(slot, record.watch);
    }
    release_remote_events(static_cast<std::uint32_t>(&slot - slot_));
  }
  if (ours && slot.identity.known) {
    cross_process_state().line_of(slot.identity.key()).judged(slot.identity.key(), exchanged);
  } else if (ours) {
    board().judged(slot.line, exchanged);
  }
  if (ours && !slot.suspected.load(std::memory_order_relaxed)) {
    runtime().budget.explored(exchanged);
  }
  charge_interruptions(slot, self);
  const std::uint64_t mean = mean_cost_ns_.load(std::memory_order_relaxed);
  mean_cost_ns_.store(watch_policy::mean_with(mean, slot.cost_ns.load(std::memory_order_relaxed)),
                      std::memory_order_relaxed);
  slot.watch.store(0, std::memory_order_release);
  if (ours) {
    append(self, &record, sizeof record, nullptr, 0);
  }
}

void WatchUnit::charge_interruptions(Slot& slot, ThreadState& self) {
  const std::uint64_t lost_ns = slot.interrupted_ns.load(std::memory_order_relaxed);
  slot.cost_ns.fetch_add(lost_ns, std::memory_order_relaxed);
  self.slot->handlers_ns.fetch_add(lost_ns, std::memory_order_relaxed);
  runtime().budget.spend(lost_ns);
  if (!slot.suspected.load(std::memory_order_relaxed)) {
    runtime().budget.explore(lost_ns);
  }
}

bool WatchUnit::expire(ThreadState& self, std::uint64_t now_ns) {
  bool closed = false;
  for (Slot& slot : slot_) {
    if (slot.watch.load(std::memory_order_relaxed) == 0 || !progress(slot).expired(now_ns) || !try_lock(slot)) {
      continue;
    }
    if (slot.watch.load(std::memory_order_relaxed) != 0 && progress(slot).expired(now_ns)) {
      close(slot, self, profile::CloseReason::horizon);
      closed = true;
    }
    unlock(slot);
  }
  return closed;
}

void WatchUnit::alarmed(ThreadState& self, std::uint64_t now_ns) {
  end_alarm(self);
  expire(self, now_ns);
}

void WatchUnit::rest() {
  for (Slot& slot : slot_) {
    if (slot.watch.load(std::memory_order_relaxed) != 0 || !try_lock(slot)) {
      continue;
    }
    const std::uint32_t first = first_event(slot);
    for (std::uint32_t i = 0; slot.watch.load(std::memory_order_acquire) == 0 && i < registry().extent(); ++i) {
      ThreadState& thread = registry().at(i);
      const std::uint32_t words = thread.watch_events.load(std::memory_order_acquire);
      // Another process may have armed it for a watch of its own.
      if (first < words && thread.watchpoints->watch[&slot - slot_].load(std::memory_order_seq_cst) == 0) {
        part_with_events(thread, first, std::min(words - first, words_per_slot));
      }
    }
    unlock(slot);
  }
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    close_idle_alarm(registry().at(i));
  }
}

void WatchUnit::close_all(ThreadState& self, profile::CloseReason reason) {
  for (Slot& slot : slot_) {
    if (try_lock(slot)) {
      if (slot.watch.load(std::memory_order_relaxed) != 0) {
        close(slot, self, reason);
      }
      unlock(slot);
    }
  }
}

void WatchUnit::leave(ThreadState& self) {
  set_words(self, 0);
  end_events(self);
}

void WatchUnit::renew_events(ThreadState& thread) {
  const std::uint32_t words = thread.watch_events.load(std::memory_order_acquire);
  thread.on_demand.fetch_or(static_cast<std::uint8_t>((1U << words) - 1), std::memory_order_seq_cst);
  end_events(thread);
}

void WatchUnit::renew_remote_events() {
  constexpr int tries = 100;  // of a watch that is being opened or closed
  for (Slot& slot : slot_) {
    for (int i = 0; i < tries; ++i) {
      if (try_lock(slot)) {
        forgo_remote_events(static_cast<std::uint32_t>(&slot - slot_));
        unlock(slot);
        break;
      }
      system_call(SYS_sched_yield);
    }
  }
}

// A thread that arms another one checks for this afterwards, and switches off the watchpoints again.
void WatchUnit::withdraw() {
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    if (thread.watch_events.load(std::memory_order_acquire) == 0) {
      continue;
    }
    thread.watchpoints->words.store(0, std::memory_order_seq_cst);
    for (std::uint32_t event = 0; event < max_words; ++event) {
      if (held_elsewhere(*thread.watchpoints, event)) {
        set_held_event(*thread.watchpoints, event, {});
      }
    }
  }
}

void WatchUnit::readmit() {
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    const std::uint32_t words = thread.watch_events.load(std::memory_order_acquire);
    if (words != 0) {
      thread.watchpoints->words.store(words, std::memory_order_seq_cst);
    }
  }
}

void WatchUnit::charge(std::uint32_t event, std::uint64_t ns) {
  if (event / words_per_slot < watch_slots) {
    slot_[event / words_per_slot].cost_ns.fetch_add(ns, std::memory_order_relaxed);
  }
}

}  // namespace crosstalk::in_target
