// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/sample_source.h"

#include <atomic>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sampling/thread_timer.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/signal_registers.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/watch_policy/thread_clock.h"

namespace crosstalk::in_target {
namespace {

// After `syscall` the kernel returns with rcx = rip and r11 = rflags: a signal that interrupted the kernel
// finds the registers so, and user code practically never has them.
bool is_in_kernel(const Registers& registers, std::uint64_t flags) {
  return registers[Register::rcx] == registers[Register::rip] &&
         (registers[Register::r11] & 0xfffU) == (flags & 0xfffU);
}

/// Makes an observation of a clock that has run out: the interrupted registers, and the time since it ran out before.
/// Its first run is of random length (watch_policy/thread_clock.h), and stands for a period.
collectors::Observation observe(const ThreadState& self, const ucontext_t& context) {
  collectors::Observation seen;
  seen.time_ns = monotonic_ns();
  seen.thread_cpu_ns = thread_cpu_ns();
  seen.cpu_ns = self.samples == 0
                    ? self.first_weight_ns
                    : watch_policy::stands_for(self.last_cpu_ns, seen.thread_cpu_ns, self.one_in, self.alone_from_ns);
  seen.thread = self.number;
  seen.cpu = current_cpu();
  seen.registers = registers_of(context);
  seen.flags = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_EFL]);
  seen.vector_state = context.uc_mcontext.fpregs;
  seen.in_kernel = is_in_kernel(seen.registers, seen.flags);
  seen.ip = seen.registers[Register::rip];
  seen.source = profile::SourceKind::clock;
  seen.weight_unit = profile::WeightUnit::ns;
  seen.weight = seen.cpu_ns;
  return seen;
}

}  // namespace

bool PosixTimer::open(ThreadState& self, std::uint64_t first_ns, std::uint64_t period_ns) {
  if (self.timer_number != 0) {
    return set_thread_timer(self.timer_number - 1, first_ns, period_ns) >= 0;
  }
  const long timer = start_thread_timer(self.tid.load(std::memory_order_relaxed), first_ns, period_ns);
  self.timer_number = timer >= 0 ? static_cast<std::int32_t>(timer) + 1 : 0;
  return timer >= 0;
}

void PosixTimer::begun(ThreadState& /*self*/) {}  // its interval is another number

void PosixTimer::set_period(ThreadState& self, std::uint64_t period_ns) { open(self, period_ns, period_ns); }

void PosixTimer::close(ThreadState& thread) {
  const std::int32_t number = std::atomic_ref(thread.timer_number).exchange(0, std::memory_order_acq_rel);
  if (number != 0) {
    delete_thread_timer(number - 1);
  }
}

collectors::Observation PosixTimer::deliver(const ThreadState& self, const ucontext_t& context) {
  return observe(self, context);
}

std::uint64_t PosixTimer::delivery_ns() { return runtime().config.signal_cost_ns; }

// An event has one period, so the first expiry is its period until then.
bool PerfTaskClock::open(ThreadState& self, std::uint64_t first_ns, std::uint64_t /*period_ns*/) {
  return open_clock_event(self.tid.load(std::memory_order_relaxed), first_ns, self.clock_event) >= 0;
}

void PerfTaskClock::begun(ThreadState& self) { set_period(self, self.period_ns); }

void PerfTaskClock::set_period(ThreadState& self, std::uint64_t period_ns) {
  set_clock_period(self.clock_event, period_ns);
}

void PerfTaskClock::close(ThreadState& thread) { close_clock_event(thread.clock_event); }

collectors::Observation PerfTaskClock::deliver(const ThreadState& self, const ucontext_t& context) {
  return observe(self, context);
}

std::uint64_t PerfTaskClock::delivery_ns() { return runtime().config.perf_sample_cost_ns; }

}  // namespace crosstalk::in_target
