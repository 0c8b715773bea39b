// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/admission.h"

#include <errno.h>

#include <algorithm>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_messages.h"

namespace crosstalk::in_target {

void Admission::start(std::uint32_t words) {
  words_configured_ = words;
  plan_.store(watch_policy::SlotPlan::of(words), std::memory_order_relaxed);
}

watch_policy::SlotPlan Admission::plan_for(const ThreadState& self) const {
  const std::uint32_t own = self.watch_events.load(std::memory_order_relaxed);
  const watch_policy::SlotPlan all = plan();
  return own < all.registers ? watch_policy::SlotPlan::of(own) : all;
}

// Opens the events that the kernel grants the calling thread, and keeps as many as fill slots: a watch without
// registers would see nothing, which would look like a watch without accesses. -EAGAIN: not known now.
long Admission::open_events(ThreadState& self) const {
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

bool Admission::grants_all() const {
  return words_granted_.load(std::memory_order_relaxed) == watch_policy::SlotPlan::of(words_configured_).registers;
}

// A thread may get fewer debug registers than others: a debugger may hold some of one thread only. Until one thread has
// got all of them, each finds out by itself. After that the others assume that they can have them, too, and learn
// otherwise when they are armed.
void Admission::admit(ThreadState& self) {
  const std::uint32_t most = words_granted_.load(std::memory_order_relaxed);
  self.watch_tried = true;
  if (grants_all()) {
    part_with_events(self, 0, most);
    set_watch_events(self, most);
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
  set_watch_events(self, granted);
}

void Admission::expect(ThreadState& self) {
  if (plan().slots > 0 && !self.watch_tried && grants_all()) {
    admit(self);
  }
}

void Admission::attend(ThreadState& self, std::span<WatchSlot> slots) {
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
    WatchSlot& slot = slots[i];
    const std::uint32_t first = slot.first_event();
    if (first >= words || slot.watch.load(std::memory_order_relaxed) != 0 || !slot.try_lock()) {
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
    slot.unlock();
  }
}

void set_watch_events(ThreadState& thread, std::uint32_t words) {
  thread.watch_events.store(words, std::memory_order_seq_cst);
  if (thread.watchpoints != nullptr) {
    thread.watchpoints->words.store(words, std::memory_order_seq_cst);
  }
}

void end_watching(ThreadState& thread) {
  set_watch_events(thread, 0);
  end_events(thread);
}

bool has_closed_events() {
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

void close_kept_events(std::span<WatchSlot> slots) {
  for (WatchSlot& slot : slots) {
    if (slot.watch.load(std::memory_order_relaxed) != 0 || !slot.try_lock()) {
      continue;
    }
    const std::uint32_t first = slot.first_event();
    for (std::uint32_t i = 0; slot.watch.load(std::memory_order_acquire) == 0 && i < registry().extent(); ++i) {
      ThreadState& thread = registry().at(i);
      const std::uint32_t words = thread.watch_events.load(std::memory_order_acquire);
      // Another process may have armed it for a watch of its own.
      if (first < words && thread.watchpoints->watch[slot.index].load(std::memory_order_seq_cst) == 0) {
        part_with_events(thread, first, std::min(words - first, words_per_slot));
      }
    }
    slot.unlock();
  }
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    close_idle_alarm(registry().at(i));
  }
}

void renew_events(ThreadState& thread) {
  const std::uint32_t words = thread.watch_events.load(std::memory_order_acquire);
  thread.on_demand.fetch_or(static_cast<std::uint8_t>((1U << words) - 1), std::memory_order_seq_cst);
  end_events(thread);
}

// A thread that arms another one checks for this afterwards, and switches off the watchpoints again.
void withdraw_threads() {
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

void readmit_threads() {
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    const std::uint32_t words = thread.watch_events.load(std::memory_order_acquire);
    if (words != 0) {
      thread.watchpoints->words.store(words, std::memory_order_seq_cst);
    }
  }
}

}  // namespace crosstalk::in_target
