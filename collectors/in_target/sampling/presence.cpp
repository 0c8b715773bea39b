// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/presence.h"

#include <algorithm>
#include <array>

#include "base/random.h"
#include "collectors/in_target/core/armed_time.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/processes/remote_events.h"
#include "collectors/in_target/sampling/fault_time.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_unit.h"

namespace crosstalk::in_target {
namespace {

// Returns the parts of the time since the last charge in which each watchpoint was armed.
ArmedParts recently_armed(ThreadState& self) {
  const std::uint64_t now_ns = monotonic_ns();
  const ArmedTimes times = armed_times(*self.watchpoints, now_ns);
  ArmedParts parts;
  for (std::uint32_t event = 0; event < max_words; ++event) {
    const auto armed = static_cast<double>(times[event] - self.charged_armed[event]);
    parts.event[event] = std::min(armed / static_cast<double>(now_ns - self.charged_ns + 1), 1.0);
  }
  self.charged_ns = now_ns;
  self.charged_armed = times;
  return parts;
}

// Returns the thread's activity since the last charge.
Activity recent_activity(ThreadState& self) {
  const ThreadUsage now = usage_of_thread();
  const ThreadUsage before = self.charged;
  self.charged = now;
  return {recently_armed(self),
          self.copying.mean(),
          self.kernel_slowdown.mean(),
          now.switches - before.switches,
          now.faults - before.faults,
          now.user_ns - before.user_ns,
          now.kernel_ns - before.kernel_ns};
}

// Returns the part of the time since the last charge that its alarm was set: a clock, which is dear at context
// switches. Call it before recent_activity().
double alarm_part(ThreadState& self) {
  const std::uint64_t now_ns = monotonic_ns();
  const std::uint64_t set_ns = alarm_time(self, now_ns);
  const auto part =
      static_cast<double>(set_ns - self.charged_alarm_ns) / static_cast<double>(now_ns - self.charged_ns + 1);
  self.charged_alarm_ns = set_ns;
  return std::min(part, 1.0);
}

// Returns the part of the time since the last charge in which the kernel kept accounts of events at context switches,
// as far as this recording knows. Call it before recent_activity().
double accounted_part(const ThreadState& self) {
  constexpr std::uint64_t lingers_ns = 1'010'000'000;  // after the last event on the machine: a second, and a tick
  const std::uint64_t now_ns = monotonic_ns();
  note_events(now_ns);
  const std::uint64_t until_ns = runtime().arena.header->events_seen_ns.load(std::memory_order_relaxed) + lingers_ns;
  const std::uint64_t passed_ns = now_ns - self.charged_ns + 1;
  const std::uint64_t over_ns = now_ns > until_ns ? now_ns - until_ns : 0;
  return 1 - std::min(static_cast<double>(over_ns) / static_cast<double>(passed_ns), 1.0);
}

// The costs that open events, and events that were closed earlier, add to a context switch.
struct SwitchCost {
  double open_ns = 0, past_ns = 0;
};

SwitchCost switch_cost(const ThreadState& self, const Activity& did, double accounted) {
  const profile::SessionConfig& config = runtime().config;
  if (self.watch_events.load(std::memory_order_relaxed) == 0) {
    return {};
  }
  const bool kept = self.on_demand.load(std::memory_order_relaxed) == 0 || any_held_elsewhere(*self.watchpoints);
  const bool had_any = std::any_of(self.charged_armed.begin(), self.charged_armed.end(),
                                   [](std::uint64_t armed_ns) { return armed_ns != 0; });
  const double open = kept ? 1 : did.armed.any();  // events on demand are open as long as they are armed
  return {open * config.presence_cost_ns, had_any ? std::max(accounted - open, 0.0) * config.past_presence_cost_ns : 0};
}

// Returns the part of the armed watchpoints' cost that was spent on lines without any suspicion.
double exploring_part(const ArmedParts& armed) {
  const double suspected = armed.of_slot(0);  // SlotPlan
  const double all = suspected + armed.of_slot(1);
  return all > 0 ? 1 - suspected / all : 0;
}

}  // namespace

void begin_presence(ThreadState& self) {
  self.charged = usage_of_thread();
  begin_fault_time(self, self.charged);
  self.charged_ns = monotonic_ns();
  self.charged_armed = armed_times(*self.watchpoints, self.charged_ns);
  self.charged_alarm_ns = self.alarm_ns;
}

void note_events(std::uint64_t now_ns) {
  const std::uint64_t seen_ns = events_open() != 0 ? now_ns : last_event_closed_ns();
  std::atomic<std::uint64_t>& latest = runtime().arena.header->events_seen_ns;
  if (seen_ns > latest.load(std::memory_order_relaxed)) {
    latest.store(seen_ns, std::memory_order_relaxed);  // of two at once, either is near enough
  }
}

// Learns how much of its time the thread copies. An interrupted string instruction resumes, so the instruction pointer
// stands on it. Looks at one observation in so many, because reading code takes half a microsecond. An interrupted
// system call has returned: its result says how much it transferred, which is at most the number of bytes asked for.
void learn_copying(ThreadState& self, const collectors::Observation& seen) {
  constexpr std::uint64_t one_in = 8;
  self.in_user.add(seen.in_kernel ? 0 : 1);
  if (seen.in_kernel) {
    const std::uint64_t result = seen.registers[Register::rax];
    const std::uint64_t asked = seen.registers[Register::rdx];
    self.kernel_slowdown.add(result <= asked ? call_slowdown(result, runtime().config) : 0);
    return;
  }
  std::array<std::uint8_t, 3> code{};  // rep, perhaps a prefix of 64 bits, opcode
  if (next_random(self.random) % one_in == 0 &&
      read_memory(seen.ip, code.data(), code.size(), runtime().pid) == code.size()) {
    const std::uint8_t opcode = (code[1] & 0xf0U) == 0x40U ? code[2] : code[1];
    const bool copies = code[0] == 0xf3 && (opcode == 0xa4 || opcode == 0xa5 || opcode == 0xaa || opcode == 0xab);
    self.copying.add(copies ? 1 : 0);
  }
}

void charge_presence(ThreadState& self) {
  const profile::SessionConfig& config = runtime().config;
  const double alarm = alarm_part(self);
  const double accounted = accounted_part(self);
  const Activity did = recent_activity(self);
  review_fault_time(self, self.charged, did.faults, did.user_ns + did.kernel_ns);
  self.slot->switches.store(self.charged.switches, std::memory_order_relaxed);
  const SwitchCost events = switch_cost(self, did, accounted);
  const double clocks = alarm + (self.clock == profile::ClockKind::perf ? 1 : 0) + self.memory.count;
  const double clock_ns = clocks * config.switch_cost_ns;
  const auto switches = static_cast<double>(did.switches);
  const double armed_ns = armed_cost_ns(did, config);
  const auto present_ns = static_cast<std::uint64_t>(switches * (clock_ns + events.open_ns) + armed_ns);
  const auto past_ns = static_cast<std::uint64_t>(switches * events.past_ns);
  self.slot->switches_ns.fetch_add(present_ns + past_ns, std::memory_order_relaxed);
  watch_policy::Budget& budget = runtime().budget;
  budget.spend(present_ns);
  budget.lose(past_ns);
  if (watch_unit().slots() > 1) {
    budget.explore(static_cast<std::uint64_t>(armed_ns * exploring_part(did.armed)));
  }
}

}  // namespace crosstalk::in_target
