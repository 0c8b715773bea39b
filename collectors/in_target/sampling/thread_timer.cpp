// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/thread_timer.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include <atomic>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/clock_signal.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/task_status.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t share = 8;                         // one in so many of those that are free
constexpr std::uint64_t allowance_holds_ns = 100'000'000;  // the program, or another of the user's, takes some as well

constinit std::atomic<std::uint32_t> live{0};
constinit std::atomic<std::uint32_t> allowed{0};
constinit std::atomic<std::uint64_t> asked_ns{0};
constinit std::atomic<bool> forgone{false};

std::uint32_t ask_allowance() {
  rlimit64 limit{};
  TaskStatus status;
  if (system_call(SYS_prlimit64, 0, RLIMIT_SIGPENDING, nullptr, &limit) < 0) {
    return 0;
  }
  const bool known = has_spare_numbers() && read_task_status(0, status);
  const std::uint64_t ours = live.load(std::memory_order_relaxed);
  const std::uint64_t others = status.signals_queued > ours ? status.signals_queued - ours : 0;
  const std::uint64_t free = limit.rlim_cur > others ? limit.rlim_cur - others : 0;
  const std::uint64_t part = free / (known ? share : share * share);
  return part < UINT32_MAX ? static_cast<std::uint32_t>(part) : UINT32_MAX;
}

bool may_start_one() {
  if (forgone.load(std::memory_order_relaxed) || !has_clock_signal()) {
    return false;
  }
  const std::uint64_t now_ns = monotonic_ns();
  if (now_ns > asked_ns.load(std::memory_order_relaxed) + allowance_holds_ns) {
    allowed.store(ask_allowance(), std::memory_order_relaxed);
    asked_ns.store(now_ns, std::memory_order_relaxed);
  }
  return live.load(std::memory_order_relaxed) < allowed.load(std::memory_order_relaxed);
}

timespec time_of(std::uint64_t ns) {
  constexpr std::uint64_t second_ns = 1'000'000'000;
  return {static_cast<time_t>(ns / second_ns), static_cast<long>(ns % second_ns)};
}

}  // namespace

long start_thread_timer(std::int32_t tid, std::uint64_t first_ns, std::uint64_t period_ns) {
  if (!may_start_one()) {
    return -EAGAIN;
  }
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = clock_signal;
  event.sigev_value.sival_ptr = &runtime();  // tells our signals from others'
  event._sigev_un._tid = tid;
  std::int32_t id = 0;
  const long made = system_call(SYS_timer_create, thread_cpu_clock(tid), &event, &id);
  if (made < 0) {
    return made;
  }
  live.fetch_add(1, std::memory_order_relaxed);
  const long set = set_thread_timer(id, first_ns, period_ns);
  if (set < 0) {
    delete_thread_timer(id);
    return set;
  }
  return id;
}

long set_thread_timer(std::int32_t id, std::uint64_t first_ns, std::uint64_t period_ns) {
  const itimerspec times{time_of(period_ns), time_of(first_ns)};
  return system_call(SYS_timer_settime, id, 0, &times, nullptr);
}

void delete_thread_timer(std::int32_t id) {
  if (system_call(SYS_timer_delete, id) >= 0) {
    live.fetch_sub(1, std::memory_order_relaxed);
  }
}

bool forgo_thread_timers() { return !forgone.exchange(true, std::memory_order_relaxed); }

void allow_thread_timers() { forgone.store(false, std::memory_order_relaxed); }

void forget_thread_timers() {
  live.store(0, std::memory_order_relaxed);
  asked_ns.store(0, std::memory_order_relaxed);
}

}  // namespace crosstalk::in_target
