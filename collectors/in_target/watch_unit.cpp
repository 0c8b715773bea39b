// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch_unit.h"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "collectors/in_target/guest.h"
#include "collectors/in_target/runtime.h"
#include "collectors/in_target/watch_events.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint32_t stray_limit = 256;  // traps of no watch in a row, after which a thread is watched no more
constexpr std::uint32_t lock_patience = 200;
constexpr std::uint64_t first_cost_guess_ns = 150'000;
constexpr std::uint32_t word_bytes = 8;
constexpr std::uint64_t verdict_ns = 400'000;  // a trap that moves others' watchpoints takes half of it
constexpr std::uint32_t words_in_line = profile::cache_line / word_bytes;

/// The largest piece that a debug register can watch (1, 2, 4 or 8 bytes, aligned) around bytes
/// [offset, offset + width) of a line: exactly the access where its size and alignment allow.
profile::WatchWord piece_of(std::uint32_t offset, std::uint32_t width, float probability) {
  std::uint32_t length = 1;
  while (length < width && length < word_bytes) {
    length *= 2;
  }
  return {static_cast<std::uint8_t>(offset & ~(length - 1)), static_cast<std::uint8_t>(length), 0, probability};
}

// The instruction before a trap, as far as it can be told here; the report decides it from the whole function.
bool was_store(const ThreadState& self, const Registers& registers, std::uint64_t flags) {
  FoundAccess access;
  return finder().find_retired(registers, flags, self.thread_pointer, code_reader(registers[Register::rip]), access) &&
         stores(access.kind);
}

bool overlap(const profile::WatchWord& a, const profile::WatchWord& b) {
  return a.offset < b.offset + b.length && b.offset < a.offset + a.length;
}

/// What moving a watchpoint has cost the thread that it belongs to, from how long it took. That of a thread that runs
/// on another processor is moved there, by an interrupt: slow, and three quarters of the time are its loss too
/// (measured with two threads that count). That of one that sleeps, or of the caller, is quick and costs it nothing.
std::uint64_t lost_by_interruption(std::uint64_t took_ns) {
  constexpr std::uint64_t quick_ns = 18'000;
  constexpr std::uint64_t descheduled_ns = 200'000;  // the caller itself was away
  return took_ns < quick_ns || took_ns > descheduled_ns ? 0 : took_ns / 4 * 3;
}

}  // namespace

void WatchUnit::start(std::uint32_t words, std::uint64_t horizon_ns) {
  words_ = words < max_words ? words : max_words;
  slots_ = words_ == 0 ? 0 : (words_ + words_per_slot - 1) / words_per_slot;
  if (words_ == 3) {
    words_ = words_per_slot;  // a slot of one word would see true sharing alone
    slots_ = 1;
  }
  horizon_ns_ = horizon_ns;
  mean_cost_ns_.store(first_cost_guess_ns, std::memory_order_relaxed);
}

void WatchUnit::forget() {
  for (Slot& slot : slot_) {
    slot.lock.store(0, std::memory_order_relaxed);
    slot.watch.store(0, std::memory_order_relaxed);
  }
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

// The first thread shows how many debug registers there are.
void WatchUnit::admit(ThreadState& self) {
  self.watch_tried = true;
  std::uint32_t words = words_granted_.load(std::memory_order_relaxed);
  if (words == words_unknown) {
    self.keeps_events = true;
    long error = 0;
    for (words = 0; words < words_ && error == 0; words += error == 0 ? 1 : 0) {
      error = keep_events(self, words, 1);
    }
    if (words < words_) {
      watch_events_missing(error, words);
    }
    words_granted_.store(words, std::memory_order_relaxed);
  } else {
    part_with_events(self, 0, words);
  }
  self.watch_events.store(words, std::memory_order_release);
}

void WatchUnit::attend(ThreadState& self) {
  if (slots_ == 0) {
    return;
  }
  if (!self.watch_tried) {
    admit(self);
  }
  const std::uint32_t words = self.watch_events.load(std::memory_order_relaxed);
  const std::uint32_t all = (1U << words) - 1;
  const std::uint32_t wanted = self.keeps_events ? 0 : all;
  for (std::uint32_t i = 0; i < slots_ && self.on_demand.load(std::memory_order_relaxed) != wanted; ++i) {
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

// Our handler's own frames may come to lie on a thread's stack below what it uses now, and before 5.19 the kernel kills
// a thread that hits a watchpoint with SIGTRAP blocked.
bool WatchUnit::may_watch(const ThreadState& thread, std::uint32_t event, std::uint64_t address) {
  return event < thread.watch_events.load(std::memory_order_acquire) &&
         (address < thread.stack_low || address >= thread.stack_high);
}

// For a watch that is being set up: an event that is not open is opened.
void WatchUnit::arm(Slot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode) {
  const std::uint32_t event = first_event(slot) + word;
  const profile::WatchWord& piece = slot.word[word];
  const std::uint64_t address = slot.line + piece.offset;
  if (!may_watch(thread, event, address)) {
    return;
  }
  const std::uint64_t begin = monotonic_ns();
  const long result = demand_event(thread, event, {address, piece.length, mode});
  moved(slot, thread, monotonic_ns() - begin, result);
}

void WatchUnit::set_mode(Slot& slot, ThreadState& thread, std::uint32_t word, WatchMode mode) {
  const std::uint32_t event = first_event(slot) + word;
  const profile::WatchWord& piece = slot.word[word];
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
    thread.watch_events.store(0, std::memory_order_release);
    descriptors_closed();
  }
}

bool WatchUnit::has_room(bool suspected, std::uint64_t now_ns) const {
  for (std::uint32_t i = first_slot(suspected); i < last_slot(suspected); ++i) {
    if (slot_[i].watch.load(std::memory_order_relaxed) == 0 || now_ns >= slot_[i].deadline_ns) {
      return true;
    }
  }
  return false;
}

void WatchUnit::choose_words(Slot& slot, ThreadState& self, const WatchRequest& request) const {
  const auto& sample = *request.sample;
  const auto offset = static_cast<std::uint32_t>(sample.address % profile::cache_line);
  const std::uint32_t width = sample.width == 0 ? 1 : sample.width;
  slot.word[0] = piece_of(offset, width, 1);
  slot.words = 1;
  // The second word: the partner's three times in four, so that what the board says is followed up; else any
  // other word of the line, so that all eight are in play.
  const Publication& partner = request.suspicion.partner;
  const profile::WatchWord named = piece_of(partner.offset, partner.width == 0 ? 1 : partner.width, 0);
  const bool has_name = request.suspicion.other_thread && !overlap(named, slot.word[0]);
  const std::uint64_t random = next_random(self.random);
  const float by_name = has_name ? 0.75F : 0.0F;
  const float by_chance = (1 - by_name) / static_cast<float>(words_in_line - 1);
  profile::WatchWord second = named;
  if (!has_name || (random & 3U) == 0) {
    const std::uint32_t own = slot.word[0].offset / word_bytes;
    const std::uint32_t other =
        (own + 1 + static_cast<std::uint32_t>((random >> 2U) % (words_in_line - 1))) % words_in_line;
    second = piece_of(other * word_bytes, word_bytes, 0);
  }
  second.probability =
      by_chance + (has_name && second.offset / word_bytes == named.offset / word_bytes ? by_name : 0.0F);
  if (words_ == 1) {  // one register: the sampled bytes or the other word, as a coin falls
    slot.word[0].probability = 0.5F;
    second.probability *= 0.5F;
    if ((random >> 40U) & 1U) {
      slot.word[0] = second;
    }
    return;
  }
  slot.word[1] = second;
  slot.words = 2;
}

std::uint32_t WatchUnit::arm_others(Slot& slot, ThreadState& self, const WatchRequest& request) {
  Registry& threads = registry();
  const std::uint32_t extent = threads.extent();
  const std::uint32_t begin = extent > max_armed ? static_cast<std::uint32_t>(next_random(self.random) % extent) : 0;
  const std::uint32_t partner = request.suspicion.partner.thread;  // index + 1
  std::uint32_t armed = 0;
  const auto arm_one = [&](ThreadState& thread) {
    if (&thread == &self || thread.watch_events.load(std::memory_order_acquire) == 0) {
      return;
    }
    for (std::uint32_t w = 0; w < slot.words; ++w) {
      arm(slot, thread, w, WatchMode::read_write);
    }
    ++armed;
  };
  if (partner != 0 && partner <= extent) {
    arm_one(threads.at(partner - 1));
  }
  for (std::uint32_t i = 0; i < extent && armed < max_armed; ++i) {
    const std::uint32_t index = (begin + i) % extent;
    if (index + 1 != partner) {
      arm_one(threads.at(index));
    }
  }
  return armed;
}

void WatchUnit::arm_self(Slot& slot, ThreadState& self, const profile::Sample& sample) {
  for (std::uint32_t w = 0; w < slot.words; ++w) {
    WatchMode mode = WatchMode::write_only;
    if (w == 0 && sample.from == profile::AddressFrom::next) {
      mode = WatchMode::read_write;  // the access has yet to happen: its trap confirms it
    } else if (w == 0 && stores(sample.access)) {
      mode = WatchMode::off;  // the store of this run is known already
    }
    arm(slot, self, w, mode);  // even if it is off: it is needed when the line has come back
  }
}

// Most lines that are tried belong to one thread, and those whose exchange costs much are exchanged many times a
// millisecond: most tries are brief; one in so many gives slow exchange its chance.
std::uint64_t WatchUnit::choose_horizon(ThreadState& self, bool suspected) const {
  constexpr std::uint64_t long_one_in = 32;
  constexpr std::uint64_t briefer_by = 40;
  return suspected || next_random(self.random) % long_one_in == 0 ? horizon_ns_ : horizon_ns_ / briefer_by;
}

bool WatchUnit::open(ThreadState& self, const WatchRequest& request, std::uint64_t now_ns) {
  profile::Sample& sample = *request.sample;
  const std::uint64_t begin = thread_cpu_ns();
  for (std::uint32_t i = first_slot(request.suspected); i < last_slot(request.suspected); ++i) {
    Slot& slot = slot_[i];
    if (slot.watch.load(std::memory_order_relaxed) != 0 || !try_lock(slot)) {
      continue;
    }
    if (slot.watch.load(std::memory_order_acquire) != 0) {
      unlock(slot);
      continue;
    }
    slot.line = sample.address & ~(static_cast<std::uint64_t>(profile::cache_line) - 1);
    choose_words(slot, self, request);
    slot.sequence.store(0, std::memory_order_relaxed);
    slot.runs.store(0, std::memory_order_relaxed);
    slot.cost_ns.store(0, std::memory_order_relaxed);
    slot.interrupted_ns.store(0, std::memory_order_relaxed);
    slot.suspected.store(request.suspected, std::memory_order_relaxed);
    slot.stored.store(sample.from != profile::AddressFrom::next && stores(sample.access), std::memory_order_relaxed);
    slot.runner.store(self.index + 1, std::memory_order_relaxed);
    const std::uint64_t horizon_ns = choose_horizon(self, request.suspected);
    slot.opened_ns = monotonic_ns();
    slot.deadline_ns = slot.opened_ns + horizon_ns;
    const std::uint32_t id = new_watch_id();
    slot.watch.store(id, std::memory_order_release);
    // First what this handler keeps from being touched: another thread may take the line while the others are armed,
    // and then sets what this one is to be armed for.
    arm_self(slot, self, sample);
    const std::uint32_t armed = arm_others(slot, self, request);
    if (brief(horizon_ns)) {
      set_alarm(self, horizon_ns);
    }

    profile::WatchOpen record;
    record.header.type = profile::RecordType::watch_open;
    record.time_ns = now_ns;
    record.line = slot.line;
    record.watch = id;
    record.words = slot.words;
    for (std::uint32_t w = 0; w < slot.words; ++w) {
      record.word[w] = slot.word[w];
    }
    record.threads = registry().live();
    record.armed = armed;
    record.suspected = request.suspected ? 1 : 0;
    record.horizon_ns = horizon_ns;
    slot.cost_ns.fetch_add(thread_cpu_ns() - begin, std::memory_order_relaxed);
    unlock(slot);
    append(self, &record, sizeof record, nullptr, 0);
    sample.watch = id;
    sample.flags |= profile::sample_armed;
    return true;
  }
  return false;
}

void WatchUnit::restore_runner(Slot& slot, std::uint32_t runner) {
  if (runner == 0 || runner > registry().extent()) {
    return;
  }
  ThreadState& thread = registry().at(runner - 1);
  for (std::uint32_t w = 0; w < slot.words; ++w) {
    const auto mode = static_cast<WatchMode>(thread.mode[first_event(slot) + w].load(std::memory_order_relaxed));
    if (mode != WatchMode::read_write) {
      set_mode(slot, thread, w, WatchMode::read_write);
    }
  }
}

// A trap of no open watch: it was in flight while the watch was closed or moved, or another thread armed this
// event while a third closed the watch. In the latter case it would fire at every access for ever.
void WatchUnit::correct(Slot& slot, ThreadState& self, std::uint32_t word, bool open) {
  const std::uint32_t event = first_event(slot) + word;
  const auto mode = static_cast<WatchMode>(self.mode[event].load(std::memory_order_relaxed));
  if (open && mode != WatchMode::off) {
    set_mode(slot, self, word, mode);
  } else {
    set_event(self, event, {});
  }
}

void WatchUnit::trapped_in_handler(ThreadState& self, std::uint32_t event) {
  if (event < self.watch_events.load(std::memory_order_acquire)) {
    set_event(self, event, {});
  }
}

bool WatchUnit::trapped(ThreadState& self, std::uint32_t event, std::uint64_t address, const Registers& registers,
                        std::uint64_t flags, std::uint64_t now_ns) {
  const std::uint32_t index = event / words_per_slot;
  if (index >= slots_) {
    return false;
  }
  Slot& slot = slot_[index];
  const std::uint32_t word = event % words_per_slot;
  const std::uint32_t id = slot.watch.load(std::memory_order_acquire);
  if (id == 0 || word >= slot.words || address != slot.line + slot.word[word].offset) {
    if (++self.stray_traps > stray_limit) {
      leave(self);
      too_many_strays();
    } else {
      correct(slot, self, word, id != 0 && word < slot.words);
    }
    return false;
  }
  self.stray_traps = 0;
  const auto mode = static_cast<WatchMode>(self.mode[event].load(std::memory_order_relaxed));
  const std::uint32_t sequence = slot.sequence.fetch_add(1, std::memory_order_relaxed);
  record_trap(self, {id, sequence, static_cast<std::uint8_t>(word), mode == WatchMode::write_only}, registers, now_ns);
  if (mode == WatchMode::write_only || was_store(self, registers, flags)) {
    slot.stored.store(true, std::memory_order_relaxed);
  }
  set_mode(slot, self, word, mode == WatchMode::read_write ? WatchMode::write_only : WatchMode::off);
  const std::uint32_t previous = slot.runner.exchange(self.index + 1, std::memory_order_acq_rel);
  std::uint32_t runs = slot.runs.load(std::memory_order_relaxed);
  if (previous != self.index + 1) {
    runs = slot.runs.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  // Until the first thread to take the line has been watched for a while, it is not known whether it takes what the
  // owner before had stored before the watch began.
  const bool first_taken = runs == 1 && previous != self.index + 1;
  if (first_taken) {
    slot.deadline_ns = std::max(slot.deadline_ns, now_ns + verdict_ns);
  }
  const bool full = sequence + 1 >= max_traps || runs >= max_runs;
  if (full || now_ns >= slot.deadline_ns) {
    if (try_lock(slot)) {
      if (slot.watch.load(std::memory_order_relaxed) == id) {
        close(slot, self, full ? profile::CloseReason::full : profile::CloseReason::horizon);
      }
      unlock(slot);
    }
  } else if (previous != self.index + 1) {
    restore_runner(slot, previous);
  }
  return true;
}

// Called with the slot's lock held.
void WatchUnit::close(Slot& slot, ThreadState& self, profile::CloseReason reason) {
  profile::WatchClose record;
  record.header.type = profile::RecordType::watch_close;
  record.time_ns = monotonic_ns();
  record.watch = slot.watch.load(std::memory_order_relaxed);
  record.reason = reason;
  record.traps = slot.sequence.load(std::memory_order_relaxed);
  const std::uint32_t extent = registry().extent();
  for (std::uint32_t i = 0; i < extent; ++i) {
    ThreadState& thread = registry().at(i);
    for (std::uint32_t w = 0; w < slot.words; ++w) {
      if (in_use(thread, first_event(slot) + w)) {
        disarm(slot, thread, w);
      }
    }
  }
  const bool exchanged = slot.stored.load(std::memory_order_relaxed) && slot.runs.load(std::memory_order_relaxed) > 0;
  judge_line(slot.line, exchanged);
  if (!slot.suspected.load(std::memory_order_relaxed)) {
    runtime().budget.explored(exchanged);
  }
  charge_interruptions(slot, self);
  watched_ns_.fetch_add(record.time_ns - slot.opened_ns, std::memory_order_relaxed);
  const std::uint64_t mean = mean_cost_ns_.load(std::memory_order_relaxed);
  mean_cost_ns_.store(mean - mean / 8 + slot.cost_ns.load(std::memory_order_relaxed) / 8, std::memory_order_relaxed);
  slot.watch.store(0, std::memory_order_release);
  append(self, &record, sizeof record, nullptr, 0);
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
  for (std::uint32_t i = 0; i < slots_; ++i) {
    Slot& slot = slot_[i];
    if (slot.watch.load(std::memory_order_relaxed) == 0 || now_ns < slot.deadline_ns || !try_lock(slot)) {
      continue;
    }
    if (slot.watch.load(std::memory_order_relaxed) != 0 && now_ns >= slot.deadline_ns) {
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

void WatchUnit::close_all(ThreadState& self, profile::CloseReason reason) {
  for (std::uint32_t i = 0; i < slots_; ++i) {
    if (try_lock(slot_[i])) {
      if (slot_[i].watch.load(std::memory_order_relaxed) != 0) {
        close(slot_[i], self, reason);
      }
      unlock(slot_[i]);
    }
  }
}

void WatchUnit::leave(ThreadState& self) {
  self.watch_events.store(0, std::memory_order_seq_cst);
  end_events(self);
}

void WatchUnit::charge(std::uint32_t event, std::uint64_t ns) {
  if (event / words_per_slot < slots_) {
    slot_[event / words_per_slot].cost_ns.fetch_add(ns, std::memory_order_relaxed);
  }
}

}  // namespace crosstalk::in_target
