// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/sampling.h"

#include <algorithm>
#include <utility>

#include "collectors/observer/sample_view.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t line_mask = ~(std::uint64_t{profile::cache_line} - 1);

}  // namespace

Sampling::Sampling(Targets& targets, in_target::AccessFinder& finder, watch_policy::Budget& budget, Watches& watches)
    : targets_(targets),
      finder_(finder),
      budget_(budget),
      watches_(watches),
      prober_(targets.arena(), budget),
      stacks_(targets.arena().config.stacks_per_s) {}

/// A clock's first sample came by chance (watch_policy/thread_clock.h), and stands for a period.
collectors::Observation Sampling::observe(WatchedThread& thread, const PerfSample& sample) {
  collectors::Observation seen;
  seen.thread = thread.number();
  seen.time_ns = sample.time_ns;
  seen.thread_cpu_ns = thread.cpu_before_ns + sample.count;
  const std::uint64_t clocked_ns =
      thread.fresh ? thread.first_period_ns : seen.thread_cpu_ns - std::min(thread.cpu_ns, seen.thread_cpu_ns);
  seen.cpu_ns = static_cast<std::uint64_t>(thread.share.take(static_cast<double>(clocked_ns)));
  seen.cpu = static_cast<std::uint16_t>(sample.cpu);
  seen.in_kernel = sample.in_kernel;
  seen.registers = sample.registers;
  seen.flags = sample.flags;
  seen.ip = sample.has_registers ? sample.registers[Register::rip] : sample.ip;
  seen.weight = seen.cpu_ns;
  return seen;
}

void Sampling::locate(const PerfSample& sample, const WatchedThread& thread, collectors::Observation& seen) {
  if (seen.in_kernel || !sample.has_registers) {
    return;
  }
  SampleView view(sample, thread.process->memory(), thread.process->maps());
  if (const auto found = view.find(finder_)) {
    seen.access_ip = found->instruction;
    seen.address = found->address;
    seen.width = found->width;
    seen.kind = found->kind;
    seen.from = found->from;
    seen.on_own_stack = thread.on_stack(seen.address);
  } else if (view.missed_mapping()) {
    thread.process->expect_new_maps();
  }
}

/// Opens a watch or probes the line, if the policy, the unit and the budget allow it. The access is over when the line
/// is watched: the watch waits for its thread's next one.
void Sampling::watch(WatchedThread& thread, const collectors::Observation& seen, profile::Sample& record) {
  const auto now_ms = static_cast<std::uint32_t>(seen.time_ns / 1'000'000);
  const auto offset = static_cast<std::uint32_t>(seen.address & ~line_mask);
  const watch_policy::SampledAccess access{offset, seen.width, seen.kind, true, seen.on_own_stack};
  const watch_policy::SharedLine shared = targets_.touch(thread, seen.address, seen.time_ns);
  if (thread.process->threads().size() < 2 && !shared.known) {
    return;  // it is alone with the line
  }
  const std::uint64_t line = seen.address & line_mask;
  const std::uint64_t key = shared.known ? shared.key() : line;
  watch_policy::Board& board = targets_.board_of(thread, shared);
  const watch_policy::Suspicion known = board.publish(
      key, {static_cast<std::uint16_t>(seen.thread), static_cast<std::uint8_t>(offset), seen.width, seen.kind, now_ms});
  const bool suspected = watch_policy::is_suspected(known, now_ms);
  record.flags |= suspected ? unsigned{profile::sample_suspected} : 0U;
  const bool probing = targets_.arena().config.method == profile::Method::probe;
  if (!(watches_.usable() || probing) || (thread.process->threads().size() < 2 && !shared.others) ||
      !is_watchable(mapping_at(thread.process->maps(), seen.address)) ||
      (probing ? seen.on_own_stack
               : !watch_policy::begins_watch(targets_.arena().config.partner, seen.kind, suspected))) {
    return;
  }
  record.flags |= profile::sample_eligible;
  if (probing) {
    record.watch = prober_.probe(thread, seen, suspected);
    record.flags |= record.watch != 0 ? unsigned{profile::sample_armed} : 0U;
    return;
  }
  if (!watch_policy::is_drawn(access, known, suspected, thread.samples + thread.number(), thread.random) ||
      !watches_.has_room(suspected) || !budget_.affords(watches_.mean_cost_ns(), !suspected)) {
    return;
  }
  record.watch =
      watches_.open(thread, {line, targets_.others_at(thread, line, shared), &board, key, access, known, suspected});
  if (record.watch != 0) {
    record.flags |= profile::sample_armed;
    record.from = profile::AddressFrom::next;
  }
}

void Sampling::write(WatchedThread& thread, const PerfSample& sample, profile::Sample& record) {
  profile::StackSlice slice;
  slice.registers = sample.registers;
  const std::uint64_t room = thread.stack_high - std::min(sample.registers[Register::rsp], thread.stack_high);
  slice.bytes = std::min<std::uint64_t>({sample.stack.size(), room, targets_.arena().config.stack_bytes}) & ~7ULL;
  if (slice.bytes == 0 || !stacks_.take(sample.time_ns)) {
    thread.records->write(record);
    return;
  }
  record.has_stack = 1;
  thread.records->write(record, &slice, sizeof slice, sample.stack.data(), slice.bytes);
}

/// Charges the thread for the cost of a sample.
void Sampling::charge(WatchedThread& thread) {
  ++samples_;
  ++thread.samples;
  profile::ThreadSlot& slot = thread.records->slot();
  const std::uint64_t cost_ns = targets_.arena().config.perf_sample_cost_ns;
  slot.samples.store(thread.samples, std::memory_order_relaxed);
  slot.handlers_ns.fetch_add(cost_ns, std::memory_order_relaxed);
  budget_.spend(cost_ns);
}

void Sampling::put(WatchedThread& thread, const PerfSample& sample, const collectors::Observation& seen) {
  profile::Sample record = collectors::record_of(seen);
  if (seen.address != 0) {
    watch(thread, seen, record);
  }
  write(thread, sample, record);
}

void Sampling::take(WatchedThread& thread, const PerfSample& sample) {
  if (sample.has_registers) {
    thread.process->learn_stack(thread, sample.registers[Register::rsp]);
  }
  collectors::Observation seen = observe(thread, sample);
  if (std::exchange(thread.fresh, false)) {
    set_event_period(thread.clock, thread.period_ns);
  }
  thread.cpu_ns = seen.thread_cpu_ns;
  profile::ThreadSlot& slot = thread.records->slot();
  slot.cpu_ns.store(std::max(thread.cpu_ns, slot.cpu_ns.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  budget_.earn(seen.cpu_ns);
  charge(thread);
  locate(sample, thread, seen);
  put(thread, sample, seen);
}

/// A thread that rests in between stands for more, as the samples of its clock do.
Measured Sampling::take(WatchedThread& thread, const PerfSample& sample, const collectors::MemoryEvent& event,
                        std::uint64_t weight) {
  charge(thread);
  collectors::Observation seen;
  seen.thread = thread.number();
  seen.time_ns = sample.time_ns;
  seen.thread_cpu_ns = thread.cpu_ns;
  seen.cpu = static_cast<std::uint16_t>(sample.cpu);
  seen.registers = sample.registers;
  seen.flags = sample.flags;
  seen.event = event.number;
  seen.weight = static_cast<std::uint64_t>(static_cast<double>(weight) * thread.share.scale());
  SampleView view(sample, thread.process->memory(), thread.process->maps());
  const Measured measured = measured_access(sample, event, {finder_, view.reader()}, seen);
  if (measured == Measured::access) {
    seen.registers[Register::rip] = seen.ip;
    seen.on_own_stack = thread.on_stack(seen.address);
    if (mapping_at(thread.process->maps(), seen.address) == nullptr) {
      thread.process->expect_new_maps();
    }
    put(thread, sample, seen);
  }
  return measured;
}

}  // namespace crosstalk::observer
