// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cstring>

#include "collectors/in_target/processes/kick.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/session/runtime.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t find_interval_ns = 250'000'000;

void reset_counters(profile::ThreadSlot& slot) {
  for (auto* counter : {&slot.lost_records, &slot.lost_bytes, &slot.samples, &slot.traps, &slot.armed,
                        &slot.handlers_ns, &slot.switches_ns, &slot.switches, &slot.cpu_ns, &slot.handler_samples_ns}) {
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

void write_start(ThreadState& self) {
  profile::ThreadStart record;
  record.header.type = profile::RecordType::thread_start;
  record.time_ns = monotonic_ns();
  record.pid = runtime().pid;
  record.tid = self.tid.load(std::memory_order_relaxed);
  record.stack_low = self.stack_low;
  record.stack_high = self.stack_high;
  record.thread_pointer = self.thread_pointer;
  system_call(SYS_prctl, PR_GET_NAME, static_cast<char*>(record.name), 0, 0, 0);
  append(self, &record, sizeof record, nullptr, 0);
}

// A state as new: what a thread before it left in the same place is gone.
void prepare_state(ThreadState& self, std::uint64_t stack_low, std::uint64_t stack_high, std::uint64_t thread_pointer) {
  self.stack_low = stack_low;
  self.stack_high = stack_high;
  self.thread_pointer = thread_pointer;
  self.timer_number = 0;
  self.clock_event = {};
  self.alarm_event = {};
  self.last_cpu_ns = thread_cpu_ns();
  self.samples = 0;
  self.handler_ns = 0;
  self.review_samples = self.review_cpu_ns = self.review_handlers_ns = self.review_switches = 0;
  self.stray_traps = 0;
  self.watch_tried = false;
  self.keeps_events = false;
  self.on_demand.store(0, std::memory_order_relaxed);
  self.recent_switches = self.recent_cpu_ns = 0;
  self.charged_ns = monotonic_ns();
  self.charged_watched_ns = runtime().watch.watched_ns();
  self.watch_events.store(0, std::memory_order_relaxed);
  const std::uint64_t seed = runtime().config.seed != 0 ? runtime().config.seed : monotonic_ns();
  self.random = (seed + self.index + 1) * 0x9e3779b97f4a7c15ULL | 1U;
}

}  // namespace

ThreadState* begin_thread(std::uint64_t stack_low, std::uint64_t stack_high, std::uint64_t thread_pointer) {
  Runtime& r = runtime();
  const std::int32_t tid = kernel_thread_id();
  if (ThreadState* known = registry().find(tid); known != nullptr) {  // found by find_threads() first
    known->stack_low = stack_low;
    known->stack_high = stack_high;
    known->thread_pointer = thread_pointer;
    write_start(*known);
    return known;
  }
  ThreadState* self = registry().add(tid);
  std::uint32_t index = 0;
  profile::ThreadSlot* slot = self != nullptr ? claim_slot(r.arena, index) : nullptr;
  if (slot == nullptr) {
    if (self != nullptr) {
      registry().remove(*self);
    }
    r.arena.header->threads_unobserved.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  prepare_state(*self, stack_low, stack_high, thread_pointer);
  self->slot = slot;
  self->number = index + 1;
  reset_counters(*slot);
  slot->pid.store(r.pid, std::memory_order_relaxed);
  slot->tid.store(tid, std::memory_order_relaxed);
  self->ring.attach(slot, r.arena.ring(index), r.arena.header->ring_bytes);
  open_gate(*slot);
  slot->state.store(static_cast<std::uint32_t>(profile::SlotState::live), std::memory_order_release);
  write_start(*self);
  self->phase.store(static_cast<std::uint32_t>(ThreadPhase::live), std::memory_order_release);
  return self;
}

void end_thread(ThreadState& self) {
  Runtime& r = runtime();
  stop_clock(self);
  shut_gate(*self.slot);
  charge_switches(self);
  // A tick that is already pending finds the phase changed, and a stale one no state at all.
  self.phase.store(static_cast<std::uint32_t>(ThreadPhase::ending), std::memory_order_release);
  r.watch.leave(self);
  profile::ThreadEnd record;
  record.header.type = profile::RecordType::thread_end;
  record.time_ns = monotonic_ns();
  record.cpu_ns = thread_cpu_ns();
  rusage usage{};
  system_call(SYS_getrusage, RUSAGE_THREAD, &usage);
  record.voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw);
  record.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
  self.slot->cpu_ns.store(record.cpu_ns, std::memory_order_relaxed);
  append(self, &record, sizeof record, nullptr, 0);
  profile::ThreadSlot* slot = self.slot;
  self.ring.detach();
  self.slot = nullptr;
  registry().remove(self);
  slot->state.store(static_cast<std::uint32_t>(profile::SlotState::ended), std::memory_order_release);
}

void stand_down(ThreadState& self) {
  Runtime& r = runtime();
  if (r.observing.exchange(false)) {
    r.watch.close_all(self, profile::CloseReason::stopped);
    track_blocks(false, 0);
  }
  stop_clock(self);
}

void find_threads(std::uint64_t now_ns) {
  Runtime& r = runtime();
  std::uint64_t checked = r.threads_checked_ns.load(std::memory_order_relaxed);
  if (now_ns < checked + find_interval_ns || !r.threads_checked_ns.compare_exchange_strong(checked, now_ns)) {
    return;
  }
  const long fd = system_call(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return;
  }
  struct stat status {};
  system_call(SYS_fstat, fd, &status);
  constexpr std::size_t own_links = 2;  // st_nlink of a task directory is its number of threads + 2
  alignas(8) char entries[1024];
  long bytes = status.st_nlink > registry().live() + own_links
                   ? system_call(SYS_getdents64, fd, static_cast<char*>(entries), sizeof entries)
                   : 0;
  for (int rounds = 0; bytes > 0 && rounds < 64; ++rounds) {
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      std::int32_t tid = 0;
      for (const char* c = entry->d_name; *c >= '0' && *c <= '9'; ++c) {
        tid = tid * 10 + (*c - '0');
      }
      at += entry->d_reclen;
      if (tid == 0 || registry().find(tid) != nullptr) {
        continue;
      }
      sigevent event{};
      event.sigev_notify = SIGEV_THREAD_ID;
      event.sigev_signo = clock_signal;
      event.sigev_value.sival_ptr = &r;
      event._sigev_un._tid = tid;
      const auto cpu_clock = static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3U) | 6U);  // MAKE_THREAD_CPUCLOCK
      std::int32_t timer = 0;
      if (system_call(SYS_timer_create, cpu_clock, &event, &timer) == 0) {
        const auto period = static_cast<long>(r.config.period_ns);
        const itimerspec interval{{period / 1'000'000'000, period % 1'000'000'000},
                                  {period / 1'000'000'000, period % 1'000'000'000}};
        system_call(SYS_timer_settime, timer, 0, &interval, nullptr);
      }
    }
    bytes = system_call(SYS_getdents64, fd, static_cast<char*>(entries), sizeof entries);
  }
  system_call(SYS_close, fd);
}

void adopt_found_thread(std::int32_t timer) {
  Runtime& r = runtime();
  if (kernel_process_id() != r.pid || !r.observing.load(std::memory_order_relaxed)) {
    return;
  }
  // Its stack is not known, and its thread pointer may be another thread's: raw clone() need not set one.
  ThreadState* self = begin_thread(0, 0, 0);
  if (self == nullptr) {
    if (timer >= 0) {
      system_call(SYS_timer_delete, timer);
    }
    return;
  }
  start_clock(*self);
  if (timer >= 0) {
    system_call(SYS_timer_delete, timer);
  }
}

}  // namespace crosstalk::in_target
