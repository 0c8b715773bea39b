// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/watch_events.h"

#include <errno.h>

#include "collectors/in_target/core/armed_time.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

bool is_open(ThreadState& thread, std::uint32_t event) {
  return std::atomic_ref(thread.watch_event[event].fd).load(std::memory_order_relaxed) > 0;
}

void note_mode(ThreadState& thread, std::uint32_t event, WatchMode mode) {
  note_mode_at(*thread.watchpoints, event, mode, monotonic_ns());
}

// Noted last: the thread's own trap handler may just have moved the event, and noted it as armed.
void close_own(ThreadState& thread, std::uint32_t event) {
  withdraw_event(*thread.watchpoints, event, thread.watch_event[event]);
  close_event(thread.watch_event[event]);
  note_mode(thread, event, WatchMode::off);
}

std::uint8_t bit(std::uint32_t event) { return static_cast<std::uint8_t>(1U << event); }

bool on_demand(const ThreadState& thread, std::uint32_t event) {
  return (thread.on_demand.load(std::memory_order_acquire) & bit(event)) != 0;
}

bool has_any_on_demand(const ThreadState& thread) { return thread.on_demand.load(std::memory_order_relaxed) != 0; }

// Disabled first: a forked child's copy of the descriptor would keep it armed.
void end_event(ThreadState& thread, std::uint32_t event) {
  set_event(thread, event, {});
  close_own(thread, event);
}

long open_claimed(ThreadState& thread, std::uint32_t event, std::int32_t tid) {
  if (!claim_event(*thread.watchpoints, event)) {
    return -EBUSY;
  }
  const long result = open_watch_event(tid, event, thread.watch_event[event]);
  publish_event(*thread.watchpoints, event, thread.watch_event[event]);
  return result;
}

}  // namespace

bool lives(const ThreadState& thread) {
  return thread.phase.load(std::memory_order_seq_cst) == static_cast<std::uint32_t>(ThreadPhase::live);
}

long keep_events(ThreadState& self, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t event = first; event < first + count; ++event) {
    note_mode(self, event, WatchMode::off);
    const long result = is_open(self, event) ? 0 : open_claimed(self, event, 0);
    if (result < 0) {
      return result;
    }
    self.on_demand.fetch_and(static_cast<std::uint8_t>(~bit(event)), std::memory_order_release);
  }
  return 0;
}

void part_with_events(ThreadState& thread, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t event = first; event < first + count; ++event) {
    thread.on_demand.fetch_or(bit(event), std::memory_order_release);
    note_mode(thread, event, WatchMode::off);
    close_own(thread, event);
  }
}

void forgo_events(ThreadState& self, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t event = first; event < first + count; ++event) {
    note_mode(self, event, WatchMode::off);
    close_own(self, event);
  }
}

void drop_events(ThreadState& thread) {
  for (OwnedEvent& event : thread.watch_event) {
    close_event(event);
  }
  close_event(thread.alarm_event);
}

void end_events(ThreadState& self) {
  for (std::uint32_t event = 0; event < max_words; ++event) {
    end_event(self, event);
  }
  close_event(self.alarm_event);
}

long set_event(ThreadState& thread, std::uint32_t event, const WatchPlace& place) {
  if (!is_open(thread, event) && held_elsewhere(*thread.watchpoints, event)) {
    return set_held_event(*thread.watchpoints, event, place);
  }
  note_mode(thread, event, place.mode);
  if (place.mode != WatchMode::off) {
    thread.watchpoints->address[event].store(place.address, std::memory_order_relaxed);
  }
  const long result = set_watch_event(thread.watch_event[event], place);
  if (result < 0 && !is_open(thread, event)) {
    note_mode(thread, event, WatchMode::off);  // another thread dismissed it first: nothing is armed
  }
  return result;
}

long demand_event(ThreadState& thread, std::uint32_t event, const WatchPlace& place) {
  if (!on_demand(thread, event) || is_open(thread, event)) {
    return set_event(thread, event, place);
  }
  if (held_elsewhere(*thread.watchpoints, event)) {
    const long result = set_held_event(*thread.watchpoints, event, place);
    if (result != -ESRCH) {
      return result;
    }
  }
  const std::int32_t tid = thread.tid.load(std::memory_order_relaxed);
  // A thread made by raw clone() ends unseen, and its number may be another process's by now.
  if (tid == 0 || system_call(SYS_tgkill, runtime().pid, tid, 0) != 0) {
    return -ESRCH;
  }
  long result = open_claimed(thread, event, tid);
  if (result >= 0 && place.mode != WatchMode::off) {
    result = set_event(thread, event, place);
  }
  // A thread that ends first says so, and then closes its events.
  if (result < 0 || !lives(thread)) {
    end_event(thread, event);
  }
  return result;
}

bool in_use(ThreadState& thread, std::uint32_t event) {
  const bool off =
      thread.watchpoints->mode[event].load(std::memory_order_relaxed) == static_cast<std::uint8_t>(WatchMode::off);
  return !off || (on_demand(thread, event) && is_open(thread, event));
}

long dismiss_event(ThreadState& thread, std::uint32_t event) {
  if (!on_demand(thread, event)) {
    return set_event(thread, event, {});
  }
  end_event(thread, event);
  return 0;
}

void set_alarm(ThreadState& self, std::uint64_t cpu_ns) {
  if (!worth_an_alarm(has_any_on_demand(self), self.in_user.mean()) ||
      (self.alarm_event.fd == 0 && open_alarm_event(self.alarm_event) < 0)) {
    return;  // the next sample ends the watch
  }
  start_alarm(self.alarm_event, cpu_ns);
  const std::uint64_t now_ns = monotonic_ns();
  self.alarm_ns = alarm_time(self, now_ns);
  self.alarm_since_ns = now_ns;
  self.alarm_until_ns = now_ns + cpu_ns;
}

// One that is set at this moment does not ring: the next sample ends the watch.
void close_idle_alarm(ThreadState& thread) {
  if (std::atomic_ref(thread.alarm_since_ns).load(std::memory_order_relaxed) == 0) {
    close_event(thread.alarm_event);
  }
}

void end_late_alarm(ThreadState& self, std::uint64_t now_ns) {
  if (self.alarm_since_ns != 0 && self.alarm_until_ns <= now_ns) {
    end_alarm(self);
  }
}

std::uint64_t alarm_time(const ThreadState& self, std::uint64_t now_ns) {
  return self.alarm_ns + (self.alarm_since_ns != 0 && self.alarm_since_ns < now_ns ? now_ns - self.alarm_since_ns : 0);
}

void end_alarm(ThreadState& self) {
  self.alarm_ns = alarm_time(self, monotonic_ns());
  self.alarm_since_ns = 0;
  if (has_any_on_demand(self)) {
    close_event(self.alarm_event);
  } else {
    stop_alarm(self.alarm_event);
  }
}

}  // namespace crosstalk::in_target
