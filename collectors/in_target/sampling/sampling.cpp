// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/sampling.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "collectors/in_target/core/messages.h"
#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/core/stack_copies.h"
#include "collectors/in_target/core/target_view.h"
#include "collectors/in_target/objects/block_budget.h"
#include "collectors/in_target/objects/blocks.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/objects/off_limits.h"
#include "collectors/in_target/probe/line_probe.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/regions/marked_regions.h"
#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sampling/fault_time.h"
#include "collectors/in_target/sampling/lookahead_sampling.h"
#include "collectors/in_target/sampling/memory_events.h"
#include "collectors/in_target/sampling/presence.h"
#include "collectors/in_target/sampling/sample_source.h"
#include "collectors/in_target/sync/measured_wait.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"
#include "collectors/in_target/watch/watch_events.h"
#include "collectors/in_target/watch/watch_unit.h"
#include "collectors/observation.h"
#include "collectors/watch_policy/probing.h"
#include "collectors/watch_policy/selection.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t line_mask = ~(static_cast<std::uint64_t>(profile::cache_line) - 1);
constexpr std::size_t stack_capacity = 8192;

/// An observation on its way through the steps of its handler, in their order below.
struct SamplePassage {
  ThreadState& self;
  collectors::Observation& seen;
  std::uint64_t now_ns = 0;          // CLOCK_MONOTONIC, when its handler began
  profile::Sample record{};          // its record
  std::uint64_t apart_ns = 0;        // the handler's CPU time that is watching's or looking ahead's, not sampling's
  const PastAccess* past = nullptr;  // it lies back: the thread has gone on since
};

/// Updates the process's budget and the thread's counters after its clock has run out.
void account(SamplePassage& at) {
  ThreadState& self = at.self;
  self.last_cpu_ns = at.seen.thread_cpu_ns;
  ++self.samples;
  self.slot->samples.store(self.samples + self.memory.samples, std::memory_order_relaxed);
  self.slot->cpu_ns.store(at.seen.thread_cpu_ns - self.cpu_before_ns, std::memory_order_relaxed);
  runtime().budget.earn(at.seen.cpu_ns);
  charge_blocks(self.thread_pointer, at.seen.cpu_ns);
}

/// Pauses watching if closed events cost more than the budget, and leaves no event open meanwhile.
void rest(const SamplePassage& at) {
  watch_policy::CommonBudget& common = cross_process_state().budget;
  const bool has_clocks = clock_events_open() != 0;
  if (common.rests.resting(at.seen.time_ns, common.account.read(), has_clocks) && events_open() > 0) {
    watch_unit().rest();
  }
}

/// Watches of others that concern this thread, and those that are over.
void tend_watches(SamplePassage& at) {
  WatchUnit& watch = watch_unit();
  // A thread that nobody could communicate with needs no events, which a program sees when it lists its descriptors.
  if (registry().live() > 1 || sharing()) {
    watch.attend(at.self);
  }
  watch.follow(at.self, at.seen.time_ns);
  const bool expired = watch.expire(at.self, at.seen.time_ns);
  end_late_alarm(at.self, at.seen.time_ns);
  note_events(at.seen.time_ns);
  rest(at);
  if (expired) {
    at.apart_ns += thread_cpu_ns() - at.seen.thread_cpu_ns;
  }
}

/// Finds the access that took the time, if the source has not told it.
void locate(SamplePassage& at) {
  collectors::Observation& seen = at.seen;
  if (!seen.in_kernel && seen.address == 0) {
    FoundAccess found;
    TargetView view(at.self, seen.registers);
    if (finder().find(seen.registers, seen.flags, at.self.thread_pointer, view.reader(), found)) {
      seen.access_ip = found.instruction;
      seen.address = found.address;
      seen.width = found.width;
      seen.kind = found.kind;
      seen.from = found.from;
    }
  }
  seen.on_own_stack = seen.address != 0 && seen.address >= at.self.stack_low && seen.address < at.self.stack_high;
}

/// Puts the access on the bulletin board. Returns the board's knowledge of its line, and the data that a watch needs.
WatchRequest publish(SamplePassage& at) {
  const collectors::Observation& seen = at.seen;
  const auto now_ms = static_cast<std::uint32_t>(seen.time_ns / 1'000'000);
  // A watch does not begin with a past access, but with the thread's next one.
  const bool yet_to_come = seen.from == profile::AddressFrom::next || at.past != nullptr;
  const watch_policy::SampledAccess access{static_cast<std::uint32_t>(seen.address & ~line_mask), seen.width, seen.kind,
                                           yet_to_come, seen.on_own_stack};
  const watch_policy::Publication publication{static_cast<std::uint16_t>(seen.thread),
                                              static_cast<std::uint8_t>(access.offset), seen.width, seen.kind, now_ms};
  WatchRequest request{&at.self, &at.record, access, find_shared_line(at.self, seen.address, seen.time_ns), {}, false};
  request.suspicion = request.shared.known ? cross_process_state()
                                                 .line_of(request.shared.key())
                                                 .publish(request.shared.key(), publication, at.self.begun_ms)
                                           : board().publish(seen.address & line_mask, publication, at.self.begun_ms);
  request.suspected = watch_policy::is_suspected(request.suspicion, now_ms);
  at.record.flags |= request.suspected ? profile::sample_suspected : 0;
  return request;
}

void say_unwatchable() {
  static constinit Once once;
  if (once.first()) {
    emit_message(
        "unwatchable_lines",
        "several threads were sampled at lines that some of them store to and that cannot be watched: they lie so "
        "near "
        "the kernel's time pages that our own handlers may read them; what is exchanged there is not observed");
  }
}

/// True if the line can be watched at all, here and for such an access.
bool is_eligible(const SamplePassage& at, const WatchRequest& request) {
  const Runtime& r = runtime();
  const bool forbidden = off_limits(at.seen.address);
  // Our own tables are nothing that a user could change.
  if (forbidden && watch_policy::would_miss_exchange(request.suspicion, request.suspected) &&
      holds_kernel_clocks(at.seen.address, 1)) {
    say_unwatchable();
  }
  return watch_unit().usable() && !forbidden && at.self.watch_events.load(std::memory_order_relaxed) != 0 &&
         (registry().live() >= 2 || request.shared.others) &&
         watch_policy::begins_watch(r.config.partner, at.seen.kind, request.suspected);
}

/// Opens a watch if the policy, the unit and the budget allow it.
void watch(SamplePassage& at, const WatchRequest& request) {
  if (!is_eligible(at, request)) {
    return;
  }
  Runtime& r = runtime();
  at.record.flags |= profile::sample_eligible;
  if (!watch_policy::is_drawn(request.access, request.suspicion, request.suspected, at.self.samples + at.self.ordinal,
                              at.self.random) ||
      cross_process_state().budget.rests.resting() || !watch_unit().has_room(at.self, request.suspected, at.now_ns) ||
      !r.budget.affords(watch_unit().mean_cost_ns(), !request.suspected)) {
    return;
  }
  const std::uint64_t begin = thread_cpu_ns();
  if (watch_unit().open(at.self, request, at.now_ns) && at.past != nullptr) {
    at.record.from = profile::AddressFrom::next;
  }
  const std::uint64_t cost = thread_cpu_ns() - begin;
  at.apart_ns += cost;
  if (!request.suspected) {
    r.budget.explore(cost);
  }
}

// Returns the CPU time of a handler that began at `begin_ns`, when its thread had used `begin_cpu_ns`. Asking the
// kernel takes longer (1.5 us) than much of a handler's work. The time on the wall is as good unless the thread was
// switched away in between, which takes longer than any handler that did not watch.
std::uint64_t handler_cpu_ns(std::uint64_t begin_ns, std::uint64_t begin_cpu_ns) {
  constexpr std::uint64_t undisturbed_ns = 30'000;
  const std::uint64_t wall_ns = monotonic_ns() - begin_ns;
  return wall_ns < undisturbed_ns ? wall_ns : thread_cpu_ns() - begin_cpu_ns;
}

/// True if the line can be probed: the thread has accessed it or is about to, and others may store.
bool can_be_probed(const SamplePassage& at, const WatchRequest& request) {
  const collectors::Observation& seen = at.seen;
  return !seen.in_kernel && !seen.on_own_stack && !off_limits(seen.address) &&
         (registry().live() >= 2 || request.shared.others);
}

void write_probe(SamplePassage& at, const WatchRequest& request, const watch_policy::TwoLooks& looks) {
  profile::LineProbe record = watch_policy::record_of(looks, at.seen.time_ns, at.seen.address);
  record.watch = new_watch_id();
  record.threads = registry().live();
  record.suspected = request.suspected ? 1 : 0;
  const std::uint64_t offset = at.seen.address - record.line;
  record.value_bytes = at.seen.width <= sizeof record.value && offset + at.seen.width <= sizeof looks.first
                           ? at.seen.width
                           : std::uint32_t{0};
  std::memcpy(&record.value, reinterpret_cast<const std::byte*>(looks.first.data()) + offset, record.value_bytes);
  append(at.self, &record, sizeof record, nullptr, 0);
  at.record.watch = record.watch;
  at.record.flags |= profile::sample_armed;
}

/// Reads the line twice, if the draw and the budget allow it. The program did not use that time: the next sample does
/// not stand for it.
void probe(SamplePassage& at, const WatchRequest& request) {
  constexpr std::uint64_t cost_ns = 10'000;
  if (!can_be_probed(at, request)) {
    return;
  }
  at.record.flags |= profile::sample_eligible;
  const watch_policy::ProbePlan plan = watch_policy::plan_probe(next_random(at.self.random));
  if (!plan.wanted || !runtime().budget.affords(cost_ns, false)) {
    return;
  }
  const std::uint64_t begin_ns = monotonic_ns();
  if (const auto looks = look_twice(at.seen.address & line_mask, plan.gap_ns, runtime().arena.header->probe_counts)) {
    write_probe(at, request, *looks);
  }
  // No more than the handler has taken yet: time that other threads had the processor is not the thread's.
  const std::uint64_t took_ns =
      std::min(monotonic_ns() - begin_ns, handler_cpu_ns(at.seen.time_ns, at.seen.thread_cpu_ns));
  at.self.last_cpu_ns += took_ns;
  at.apart_ns += took_ns;
}

/// The block of memory that the access lies in, when it is met first.
void report_block(const SamplePassage& at) {
  BlockInfo block;
  if (at.seen.on_own_stack || !find_block(at.seen.address, block) || !block.first_report) {
    return;
  }
  profile::Block record;
  record.header.type = profile::RecordType::block;
  record.time_ns = at.seen.time_ns;
  record.begin = block.begin;
  record.bytes = block.bytes;
  record.site = block.site;
  record.kind = block.kind;
  append(at.self, &record, sizeof record, nullptr, 0);
}

/// Copies the piece of stack that came with a past access, as copy_stack() does.
std::size_t copy_past_stack(const SamplePassage& at, std::byte* buffer) {
  profile::StackSlice slice;
  slice.registers = at.seen.registers;
  const std::uint64_t begin = slice.registers[Register::rsp];
  const std::uint64_t room = at.self.stack_high - std::min(begin, at.self.stack_high);
  slice.bytes = std::min<std::uint64_t>({at.past->stack.size(), room, stack_capacity - sizeof slice}) & ~7ULL;
  if (slice.bytes == 0 || !allow_stack_copy(at.now_ns)) {
    return 0;
  }
  std::memcpy(buffer, &slice, sizeof slice);
  std::memcpy(buffer + sizeof slice, at.past->stack.data(), slice.bytes);
  return sizeof slice + slice.bytes;
}

void write(SamplePassage& at) {
  // Written by one thread's handler at a time; the bytes need not outlive the call. On the handler's stack
  // they would take more room than a handler should.
  static std::array<std::byte, stack_capacity> buffer;
  static constinit ProcessFlag buffer_taken;
  const TryLock lock(buffer_taken, runtime().pid);
  std::size_t bytes = 0;
  if (lock.held()) {
    bytes = at.past != nullptr ? copy_past_stack(at, buffer.data())
                               : copy_stack(at.self, at.seen.registers, at.seen.time_ns, buffer.data(), buffer.size());
  }
  at.record.has_stack = bytes != 0 ? 1 : 0;
  append(at.self, &at.record, sizeof at.record, buffer.data(), bytes);
  note_code_address(at.seen.ip);
}

void look_ahead(SamplePassage& at) {
  if (at.seen.in_kernel) {
    return;
  }
  // The program did not use this time: the next sample does not stand for it.
  const std::uint64_t took_ns = perhaps_look_ahead(at.self, at.seen);
  at.self.last_cpu_ns += took_ns;
  at.apart_ns += took_ns;
}

/// Charges the cost of the observation: its handler's CPU time, and the calibrated price of entering and leaving it.
void charge(const SamplePassage& at, std::uint64_t delivery_ns) {
  ThreadState& self = at.self;
  const std::uint64_t handler_ns = handler_cpu_ns(at.seen.time_ns, at.seen.thread_cpu_ns);
  const std::uint64_t sampling_ns = handler_ns - std::min(at.apart_ns, handler_ns);  // of two clocks
  self.handler_ns = static_cast<std::uint32_t>(sampling_ns);
  note_handler(sampling_ns);
  self.slot->handler_samples_ns.fetch_add(sampling_ns, std::memory_order_relaxed);
  self.slot->handlers_ns.fetch_add(handler_ns + delivery_ns, std::memory_order_relaxed);
  runtime().budget.spend(handler_ns + delivery_ns);
}

/// The way of an access that was sampled some time ago.
void handle_past(ThreadState& self, const PastAccess& access, SamplePassage& tick, bool may_watch) {
  collectors::Observation& seen = access.seen;
  SamplePassage at{self, seen, tick.now_ns};
  at.past = &access;
  seen.on_own_stack = seen.address >= self.stack_low && seen.address < self.stack_high;
  at.record = collectors::record_of(seen);
  at.record.region = region_at(self, seen.time_ns);
  const WatchRequest request = publish(at);
  if (may_watch) {
    watch(at, request);
    report_block(at);
  }
  write(at);
  tick.apart_ns += at.apart_ns;
}

/// Charges the sampled accesses for the kernel's time for each.
void charge_accesses(ThreadState& self, std::uint32_t samples) {
  const std::uint64_t delivery_ns = samples * MemoryEvents::delivery_ns();
  self.memory.samples += samples;
  self.slot->samples.store(self.samples + self.memory.samples, std::memory_order_relaxed);
  self.slot->handlers_ns.fetch_add(delivery_ns, std::memory_order_relaxed);
  runtime().budget.spend(delivery_ns);
}

/// Writes the accesses that were sampled since the thread's clock went off last, before the clock's own sample, which
/// is later.
void take_accesses(SamplePassage& tick) {
  ThreadState& self = tick.self;
  if (!MemoryEvents::is_open(self)) {
    return;
  }
  constexpr std::uint64_t ns_per_us = 1000;
  charge_accesses(
      self, MemoryEvents::deliver(self, [&](const PastAccess& access) { handle_past(self, access, tick, true); }));
  MemoryEvents::keep_pace(self, self.slot->period_us.load(std::memory_order_relaxed) * ns_per_us);
}

/// The way of an observation from its source to the ring.
void handle(ThreadState& self, collectors::Observation& seen, std::uint64_t delivery_ns) {
  SamplePassage at{self, seen, seen.time_ns};
  account(at);
  learn_copying(self, seen);
  if (is_fault_time(self, seen)) {
    seen.in_kernel = true;
    ++seen.ip;  // the instruction that the time belongs to is looked for in front of it
  }
  tend_watches(at);
  take_accesses(at);
  locate(at);
  at.record = collectors::record_of(seen);
  at.record.previous_handler_ns = self.handler_ns;
  at.record.region = region_of(self);
  at.record.flags |= is_waiting(self, seen.registers[Register::rsp]) ? profile::sample_waiting : 0;
  if (seen.address != 0) {
    const WatchRequest request = publish(at);
    report_block(at);
    runtime().config.method == profile::Method::probe ? probe(at, request) : watch(at, request);
  }
  write(at);
  review_clock(self, seen.thread_cpu_ns);
  look_ahead(at);
  charge(at, delivery_ns);
}

}  // namespace

void take_last_accesses(ThreadState& self) {
  if (!MemoryEvents::is_open(self)) {
    return;
  }
  collectors::Observation none;
  SamplePassage last{self, none, monotonic_ns()};
  charge_accesses(
      self, MemoryEvents::deliver(self, [&](const PastAccess& access) { handle_past(self, access, last, false); }));
}

void take_sample(ThreadState& self, const ucontext_t& context) {
  const HandlerStay stay;
  with_source(self, [&](auto source) {
    collectors::Observation seen = source.deliver(self, context);
    if (self.samples == 0) {
      source.begun(self);
    }
    handle(self, seen, source.delivery_ns());
  });
}

}  // namespace crosstalk::in_target
