// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/step_aside.h"

#include <atomic>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sampling/thread_timer.h"
#include "collectors/in_target/sys/float_state.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/task_list.h"
#include "collectors/in_target/threads/found_table.h"
#include "collectors/in_target/threads/inspection.h"
#include "collectors/in_target/watch/admission.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t patience_ns = 300'000'000;  // for all threads, should one be stopped in a handler

constinit std::atomic<bool> done{false};
constinit std::atomic<bool> traps_forgone{false};
constinit std::atomic<bool> watchpoints_forgone{false};

template <class Action>
void each_live(Action action) {
  for (std::uint32_t i = 0; i < registry().extent(); ++i) {
    ThreadState& thread = registry().at(i);
    if (thread.phase.load(std::memory_order_acquire) == static_cast<std::uint32_t>(ThreadPhase::live)) {
      action(thread);
    }
  }
}

void wait_a_little() {
  const timespec little{0, 50'000};
  system_call(SYS_nanosleep, &little, nullptr);
}

void wait_for_others(std::uint64_t until_ns) {
  while (Passage::anybody() && monotonic_ns() < until_ns) {
    wait_a_little();
  }
  const std::int32_t self = kernel_thread_id();
  each_task([&](std::int32_t tid) {
    while (tid != self && in_handler(tid) && monotonic_ns() < until_ns) {
      wait_a_little();
    }
  });
}

// Timers and descriptors are the process's: one thread can do it for all.
void silence() {
  if (ThreadState* self = current_thread(); self != nullptr) {
    watch_unit().close_all(*self, profile::CloseReason::stopped);
  }
  each_live([](ThreadState& thread) {
    stop_clock(thread);
    MemoryEvents::close(thread);
    end_watching(thread);
  });
  forget_found_threads();
}

}  // namespace

void step_aside(const char* code, const char* text, StepAside how) {
  const OwnFloatState float_state;
  Runtime& r = runtime();
  const bool without_trace = how == StepAside::without_trace;
  const std::uint64_t until_ns = monotonic_ns() + patience_ns;
  if (code != nullptr && observing()) {
    emit_message(code, text);
  }
  if (!r.observing.exchange(false)) {
    while (without_trace && !done.load(std::memory_order_acquire) && monotonic_ns() < until_ns) {
      wait_a_little();
    }
    return;
  }
  done.store(false, std::memory_order_relaxed);
  track_blocks(false, 0);
  withdraw_threads();
  if (without_trace) {
    wait_for_others(until_ns);  // a handler that goes on may open an event or start a timer
  }
  silence();
  if (without_trace) {
    wait_for_others(until_ns);  // earlier signals are delivered, and do nothing
  }
  done.store(true, std::memory_order_release);
}

void forget_steps_aside() {
  done.store(false, std::memory_order_relaxed);
  traps_forgone.store(false, std::memory_order_relaxed);
  watchpoints_forgone.store(false, std::memory_order_relaxed);
  allow_thread_timers();
}

void forgo_traps(const char* code, const char* text) {
  const OwnFloatState float_state;
  Runtime& r = runtime();
  if (!observing() || traps_forgone.exchange(true)) {
    return;
  }
  emit_message(code, text);
  if (ThreadState* self = current_thread(); self != nullptr) {
    watch_unit().close_all(*self, profile::CloseReason::stopped);
  }
  watch_unit().start(0, r.config.horizon_ns);
  r.config.perf_allowed = 0;
  each_live([](ThreadState& thread) {
    end_watching(thread);
    forgo_perf_clock(thread);
  });
}

void forgo_watchpoints(const char* code, const char* text) {
  const OwnFloatState float_state;
  Runtime& r = runtime();
  if (!observing() || watchpoints_forgone.exchange(true)) {
    return;
  }
  emit_message(code, text);
  const auto end_all = [] {
    if (ThreadState* self = current_thread(); self != nullptr) {
      watch_unit().close_all(*self, profile::CloseReason::stopped);
    }
    each_live([](ThreadState& thread) { end_watching(thread); });
  };
  watch_unit().start(0, r.config.horizon_ns);
  withdraw_threads();
  end_all();
  wait_for_others(monotonic_ns() + patience_ns);  // one that was in a handler may have opened an event meanwhile
  end_all();
}

void forgo_descriptors(const char* code, const char* text) {
  const OwnFloatState float_state;
  if (!observing()) {
    return;
  }
  forgo_watchpoints(code, text);
  runtime().config.perf_allowed = 0;
  runtime().memory.events = 0;
  // A handler that was about to open an event or to arm a thread may have done so after this looked at that thread.
  // Once descriptors are no longer common, nobody could switch that event off.
  wait_for_others(monotonic_ns() + patience_ns);
  each_live([](ThreadState& thread) {
    end_watching(thread);
    forgo_perf_clock(thread);
    MemoryEvents::close(thread);
  });
}

void forgo_vdso() {
  vdso_clock_gettime.store(nullptr, std::memory_order_seq_cst);
  if (observing()) {
    wait_for_others(monotonic_ns() + patience_ns);
  }
}

bool forgo_timers(const char* code, const char* text) {
  const OwnFloatState float_state;
  if (!observing() || !forgo_thread_timers()) {
    return false;
  }
  emit_message(code, text);
  each_live([](ThreadState& thread) { forgo_posix_clock(thread); });
  forget_found_threads();
  return true;
}

}  // namespace crosstalk::in_target
