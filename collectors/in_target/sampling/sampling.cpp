// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/sampling.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "collectors/in_target/access/target_view.h"
#include "collectors/in_target/interpose/off_limits.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/lookahead_sampling.h"
#include "collectors/in_target/session/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t line_mask = ~(static_cast<std::uint64_t>(profile::cache_line) - 1);
constexpr std::size_t stack_capacity = 8192;
constexpr std::uint64_t kick_bit = std::uint64_t{1} << static_cast<unsigned>(kick_signal - 1);

// After `syscall` the kernel returns with rcx = rip and r11 = rflags: a signal that interrupted the kernel
// finds the registers so, and user code practically never has them.
bool in_kernel(const Registers& registers, std::uint64_t flags) {
  return registers[Register::rcx] == registers[Register::rip] &&
         (registers[Register::r11] & 0xfffU) == (flags & 0xfffU);
}

void locate_access(ThreadState& self, const Registers& registers, std::uint64_t flags, profile::Sample& sample) {
  FoundAccess found;
  TargetView view(self, registers);
  if (!finder().find(registers, flags, self.thread_pointer, view.reader(), found)) {
    return;
  }
  sample.access_ip = found.instruction;
  sample.address = found.address;
  sample.width = found.width;
  sample.access = found.kind;
  sample.from = found.from;
  if (found.address >= self.stack_low && found.address < self.stack_high) {
    sample.flags |= profile::sample_on_stack;
  }
}

void report_block(ThreadState& self, std::uint64_t address, std::uint64_t now_ns) {
  BlockInfo block;
  if (!find_block(address, block) || !block.first_report) {
    return;
  }
  profile::Block record;
  record.header.type = profile::RecordType::block;
  record.time_ns = now_ns;
  record.begin = block.begin;
  record.bytes = block.bytes;
  record.site = block.site;
  record.kind = block.kind;
  append(self, &record, sizeof record, nullptr, 0);
}

// Publishes the access and opens a watch where the budget, the unit and what is known of the line allow.
// Returns the thread CPU time that opening it took.
std::uint64_t follow_up(ThreadState& self, profile::Sample& sample) {
  Runtime& r = runtime();
  const auto now_ms = static_cast<std::uint32_t>(sample.time_ns / 1'000'000);
  const bool on_stack = (sample.flags & profile::sample_on_stack) != 0;
  const watch_policy::SampledAccess access{static_cast<std::uint32_t>(sample.address & ~line_mask), sample.width,
                                           sample.access, sample.from == profile::AddressFrom::next, on_stack};
  const watch_policy::Publication publication{static_cast<std::uint16_t>(self.number),
                                              static_cast<std::uint8_t>(access.offset), sample.width, sample.access,
                                              now_ms};
  WatchRequest request{&self, &sample, access, find_shared_line(self, sample.address, sample.time_ns), {}, false};
  request.suspicion =
      request.shared.known
          ? cross_process_state().line_of(request.shared.key()).publish(request.shared.key(), publication)
          : board().publish(sample.address & line_mask, publication);
  request.suspected = watch_policy::is_suspected(request.suspicion, now_ms);
  if (request.suspected) {
    sample.flags |= profile::sample_suspected;
  }
  const bool forbidden =
      off_limits(sample.address) && !request.shared.known;  // a small mapping may lie close to the vdso
  if (!r.watch.usable() || forbidden || self.watch_events.load(std::memory_order_relaxed) == 0 ||
      (registry().live() < 2 && !request.shared.others) ||
      !watch_policy::begins_watch(r.config.method, sample.access, request.suspected)) {
    return 0;
  }
  sample.flags |= profile::sample_eligible;
  if (!watch_policy::is_drawn(access, request.suspicion, request.suspected, self.samples, self.random)) {
    return 0;
  }
  if (!r.watch.has_room(request.suspected, sample.time_ns) ||
      !r.budget.affords(r.watch.mean_cost_ns(), !request.suspected)) {
    return 0;
  }
  const std::uint64_t begin = thread_cpu_ns();
  r.watch.open(self, request, sample.time_ns);
  const std::uint64_t cost = thread_cpu_ns() - begin;
  if (!request.suspected) {
    r.budget.explore(cost);
  }
  return cost;
}

// The CPU time of a handler that began at `begin_ns`, when its thread had used `begin_cpu_ns`. Asking the kernel for it
// takes longer (1.5 us) than much of what a handler does, and the time on the wall is as good unless the thread was
// switched away in between, which takes longer than any handler that did not watch.
std::uint64_t handler_cpu_ns(std::uint64_t begin_ns, std::uint64_t begin_cpu_ns) {
  constexpr std::uint64_t undisturbed_ns = 30'000;
  const std::uint64_t wall_ns = monotonic_ns() - begin_ns;
  return wall_ns < undisturbed_ns ? wall_ns : thread_cpu_ns() - begin_cpu_ns;
}

// What a sample has cost: its handler's CPU time and the calibrated price of getting there and back.
void charge(ThreadState& self, std::uint64_t handler_ns, std::uint64_t watching_ns) {
  Runtime& r = runtime();
  const std::uint64_t delivery_ns =
      self.clock == profile::ClockKind::perf ? r.config.perf_sample_cost_ns : r.config.signal_cost_ns;
  const std::uint64_t sampling_ns = handler_ns - std::min(watching_ns, handler_ns);  // of two clocks
  self.handler_ns = static_cast<std::uint32_t>(sampling_ns);
  self.slot->handler_samples_ns.fetch_add(sampling_ns, std::memory_order_relaxed);
  self.slot->handlers_ns.fetch_add(handler_ns + delivery_ns, std::memory_order_relaxed);
  r.budget.spend(handler_ns + delivery_ns);
}

void write_sample(ThreadState& self, profile::Sample& sample, const Registers& registers) {
  sample.header.type = profile::RecordType::sample;
  // Written by one thread's handler at a time; the bytes need not outlive the call. On the handler's stack
  // they would take more of the target's than a guest should.
  static std::array<std::byte, stack_capacity> buffer;
  static constinit ProcessFlag buffer_taken;
  const TryLock lock(buffer_taken, runtime().pid);
  std::size_t bytes = 0;
  if (lock.held()) {
    bytes = copy_stack(self, registers, sample.time_ns, buffer.data(), buffer.size());
  }
  sample.has_stack = bytes != 0 ? 1 : 0;
  sample.registers = registers;
  append(self, &sample, sizeof sample, buffer.data(), bytes);
}

}  // namespace

Registers registers_of(const ucontext_t& context) {
  static constexpr std::array<int, register_count> order = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                                            REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                                            REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
  Registers registers;
  for (std::size_t i = 0; i < register_count; ++i) {
    registers.value[i] = static_cast<std::uint64_t>(context.uc_mcontext.gregs[order[i]]);
  }
  return registers;
}

void take_sample(ThreadState& self, const ucontext_t& context) {
  Runtime& r = runtime();
  const std::uint64_t begin_ns = monotonic_ns();
  const std::uint64_t cpu_ns = thread_cpu_ns();
  const Registers registers = registers_of(context);
  const auto flags = static_cast<std::uint64_t>(context.uc_mcontext.gregs[REG_EFL]);
  profile::Sample sample;
  sample.time_ns = begin_ns;
  sample.ip = registers[Register::rip];
  sample.cpu_ns = cpu_ns - self.last_cpu_ns;
  self.last_cpu_ns = cpu_ns;
  sample.cpu = current_cpu();
  sample.previous_handler_ns = self.handler_ns;
  ++self.samples;
  self.slot->samples.store(self.samples, std::memory_order_relaxed);
  self.slot->cpu_ns.store(cpu_ns, std::memory_order_relaxed);
  r.budget.earn(sample.cpu_ns);
  r.watch.attend(self);
  self.kick_blocked = (context.uc_sigmask.__val[0] & kick_bit) != 0;
  if (sharing() && self.kick_blocked) {
    stop_sharing();
  }
  r.watch.follow(self, sample.time_ns);
  std::uint64_t watching_ns = r.watch.expire(self, sample.time_ns) ? thread_cpu_ns() - cpu_ns : 0;
  if (in_kernel(registers, flags)) {
    sample.flags |= profile::sample_in_kernel;
  } else {
    locate_access(self, registers, flags, sample);
    if (sample.address != 0) {
      watching_ns += follow_up(self, sample);
      if ((sample.flags & profile::sample_on_stack) == 0) {
        report_block(self, sample.address, sample.time_ns);
      }
    }
  }
  write_sample(self, sample, registers);
  note_code_address(sample.ip);
  review_clock(self, cpu_ns);
  if ((sample.flags & profile::sample_in_kernel) == 0) {
    // The walk's time is not the program's: the next sample does not stand for it.
    const std::uint64_t walking_ns = perhaps_look_ahead(self, registers, flags, sample.time_ns);
    self.last_cpu_ns += walking_ns;
    watching_ns += walking_ns;
  }
  charge(self, handler_cpu_ns(begin_ns, cpu_ns), watching_ns);
}

void repair_interrupted_call(ucontext_t& context) {
  auto& gregs = context.uc_mcontext.gregs;
  if (gregs[REG_RAX] != -EINTR || gregs[REG_RCX] != gregs[REG_RIP]) {
    return;
  }
  constexpr std::size_t code_bytes = 7;  // mov $number, %eax; syscall
  std::array<std::uint8_t, code_bytes> code{};
  const auto ip = static_cast<std::uint64_t>(gregs[REG_RIP]);
  if (read_memory(ip - code_bytes, code.data(), code_bytes, runtime().pid) != code_bytes || code[0] != 0xb8 ||
      code[5] != 0x0f || code[6] != 0x05) {
    return;
  }
  std::uint32_t number = 0;
  std::memcpy(&number, &code[1], sizeof number);
  switch (number) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex:
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_semtimedop:
      gregs[REG_RAX] = number;
      gregs[REG_RIP] = static_cast<greg_t>(ip - 2);
      break;
    default:
      break;
  }
}

}  // namespace crosstalk::in_target
