// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sampling/memory_events.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <variant>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sampling/past_view.h"
#include "collectors/in_target/sys/event_ring.h"
#include "collectors/in_target/sys/handler_stack.h"
#include "collectors/in_target/sys/ibs_context.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/perf_events.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/memory_samples/module_records.h"
#include "collectors/memory_samples/perf_records.h"
#include "collectors/memory_samples/ring_cursor.h"

namespace crosstalk::in_target {
namespace {

using collectors::Measured;
using collectors::PerfSample;

constexpr std::size_t longest_record = 1024;  // of our attributes, with room to spare
constexpr std::uint32_t most_records = 64;    // in one handler; the others wait for the next
constexpr std::uint32_t flood = 8;            // samples of one tick: a ring has room for a dozen
constexpr double permille = 1000;

// The periods that threads before were found to need, by event; 0: none was. A thread begins with them.
constinit std::atomic<std::uint64_t> learned_period[profile::most_memory_events];

const profile::MemorySampling& settings() { return runtime().memory; }

/// True if our kernel module samples instead of perf. Its event is alone.
bool by_module() { return settings().event[0].source == profile::SourceKind::ibs_kmod; }

profile::MemoryCounts& counts() { return runtime().arena.header->memory_counts; }

void count(std::atomic<std::uint64_t>& counter, std::uint64_t more = 1) {
  counter.fetch_add(more, std::memory_order_relaxed);
}

collectors::SampledEvent sampled(const profile::MemoryEvent& event) {
  const bool of_kernel = event.attr.type == PERF_TYPE_SOFTWARE || event.attr.type == PERF_TYPE_TRACEPOINT;
  return {event.source, event.weight_unit, static_cast<collectors::Accesses>(event.accesses), event.period_random != 0,
          of_kernel};
}

// ---- opening

long open_one(ThreadState& self, std::uint32_t index) {
  const profile::MemoryEvent& event = settings().event[index];
  const collectors::SampledEvent what = sampled(event);
  ThreadMemoryEvents::Event& own = self.memory.event[index];
  const std::int32_t tid = self.tid.load(std::memory_order_relaxed);
  const std::uint64_t learned = learned_period[index].load(std::memory_order_relaxed);
  const std::uint64_t period = learned != 0 ? learned : event.attr.sample_period;
  own.pace = collectors::EventPace(what, period, flood);
  if (by_module()) {
    return open_ibs_context(period, settings().ring_bytes, own.event);
  }
  perf_event_attr attr = event.attr;  // the first sample comes at random
  attr.sample_period = collectors::allowed_period(
      what, static_cast<std::uint64_t>(static_cast<double>(period) * collectors::period_by_chance(self.random)));
  if (event.has_leader != 0) {
    if (const long led = open_measuring_event(event.leader, tid, nullptr, own.leader); led < 0) {
      return led;
    }
  }
  return open_measuring_event(attr, tid, event.has_leader != 0 ? &own.leader : nullptr, own.event);
}

/// All events write into the ring of the first.
long open_all(ThreadState& self) {
  self.memory.lost = 0;
  for (std::uint32_t i = 0; i < settings().events; ++i) {
    long result = open_one(self, i);
    if (result >= 0) {
      const OwnedEvent& first = self.memory.event[0].event;
      result = i == 0 ? map_event_ring(first, settings().ring_bytes, self.memory.ring)
                      : write_into_ring_of(self.memory.event[i].event, first);
    }
    if (result < 0) {
      return result;
    }
  }
  return 0;
}

void start(const ThreadMemoryEvents::Event& event, const profile::MemoryEvent& what) {
  if (by_module()) {
    start_ibs_context(event.event);
  } else {
    enable_event(what.has_leader != 0 ? event.leader : event.event);
  }
}

long counts_of(const OwnedEvent& event, EventCounts& counted) {
  return by_module() ? read_ibs_counts(event, counted) : read_counts(event, counted);
}

long set_period(const OwnedEvent& event, std::uint64_t period) {
  return by_module() ? set_ibs_period(event, period) : set_clock_period(event, period);
}

void close_all(ThreadState& thread) {
  for (ThreadMemoryEvents::Event& each : thread.memory.event) {
    close_clock_event(each.event);
    close_clock_event(each.leader);
  }
}

profile::MemoryRefusal refusal_of(long result) {
  switch (result) {
    case -EMFILE:
      return profile::MemoryRefusal::descriptors;
    case -ENOMEM:
      return profile::MemoryRefusal::locked_memory;
    default:
      return profile::MemoryRefusal::kernel;
  }
}

// ---- reading

/// True if a handler of ours was sampled. Our handlers are not part of the program; they run on stacks of ours. The
/// module tells no registers, but the instruction.
bool is_own(const PerfSample& sample) {
  return sample.has_registers ? handler_stacks().at(sample.registers[Register::rsp]) != nullptr
                              : is_own_memory(sample.ip);
}

void note(Measured measured) {
  profile::MemoryCounts& all = counts();
  switch (measured) {
    case Measured::access:
      count(all.accesses);
      break;
    case Measured::in_kernel:
      count(all.in_kernel);
      break;
    case Measured::no_access:
      count(all.without_access);
      break;
    case Measured::half_an_update:
      count(all.half_updates);
      break;
  }
}

void note_missing_part(const collectors::EventPace& pace) {
  const auto missing = static_cast<std::uint32_t>((1 - pace.counting_part()) * permille);
  std::atomic<std::uint32_t>& largest = counts().missing_permille;
  if (missing > largest.load(std::memory_order_relaxed)) {
    largest.store(missing, std::memory_order_relaxed);  // of two at once, either is near enough
  }
}

bool lacks_counter(const ThreadMemoryEvents& memory) {
  const auto never = std::count_if(memory.event, memory.event + memory.count,
                                   [](const ThreadMemoryEvents::Event& each) { return each.pace.never_counted(); });
  return collectors::lacks_counter(static_cast<std::size_t>(never), memory.count, settings().one_unit != 0);
}

/// An event that has no counter, or has lost it, takes no sample that would tell: only reading it does.
void look_at(ThreadMemoryEvents& memory, collectors::EventPace& pace, const EventCounts& counted) {
  const bool lacked = lacks_counter(memory);
  pace.look(counted.enabled_ns, counted.running_ns, settings().one_unit != 0);
  note_missing_part(pace);
  const bool lacks = lacks_counter(memory);
  const bool has_come = lacked && !lacks;  // in the end it has got one
  if (has_come ? memory.without_counter : lacks && !memory.without_counter) {
    memory.without_counter = lacks;  // a thread is counted once, however often its events are opened
    counts().without_counter.fetch_add(lacks ? 1U : ~0U, std::memory_order_relaxed);
  }
}

struct Receiver {
  MemoryEvents::Take take;
  void* context;
};

void observe(ThreadState& self, const PerfSample& sample, const Receiver& receiver) {
  const std::uint32_t events = self.memory.count;
  std::uint32_t index = 0;
  while (index < events && self.memory.event[index].event.id != sample.event) {
    ++index;
  }
  if (index == events) {
    return;
  }
  collectors::EventPace& pace = self.memory.event[index].pace;
  // Weighs dropped samples, too: the samples that are kept do not stand for them.
  const std::uint64_t weight = pace.weigh(sample, settings().one_unit != 0);
  note_missing_part(pace);
  if (is_own(sample)) {
    return;
  }
  collectors::Observation seen;
  seen.thread = self.number;
  seen.time_ns = sample.time_ns;
  seen.thread_cpu_ns = self.last_cpu_ns;
  seen.cpu = static_cast<std::uint16_t>(sample.cpu);
  seen.registers = sample.registers;
  seen.flags = sample.flags;
  seen.event = static_cast<std::uint8_t>(index + 1);
  seen.weight = weight;
  PastView view(sample);
  const Measured measured =
      collectors::measured_access(sample, pace.event(), {finder(), view.reader(), self.thread_pointer}, seen);
  note(measured);
  if (measured == Measured::access) {
    seen.registers[Register::rip] = seen.ip;
    receiver.take(receiver.context, {seen, sample.stack});
  }
}

/// The program has written into the ring, so the kernel's use of it is unknown.
void give_up(ThreadState& self) {
  count(counts().lost);
  MemoryEvents::close(self);
}

std::uint32_t take_records(ThreadState& self, EventRingReader& reader, const Receiver& receiver) {
  alignas(std::uint64_t) std::array<std::byte, longest_record> bytes;
  const collectors::SampleLayout layout{settings().event[0].attr.sample_type, true};
  const std::uint64_t head = reader.head();
  std::uint64_t tail = reader.tail();
  if (head - tail > reader.data().size()) {
    give_up(self);
    return 0;
  }
  std::uint32_t samples = 0;
  for (std::uint32_t records = 0; tail != head && records < most_records; ++records) {
    const auto record = collectors::take_ring_record(reader.data(), head, tail, bytes);
    const auto parsed = collectors::parse_perf_record(record, layout);
    reader.give_back(tail);
    if (!parsed) {
      count(counts().lost);
    } else if (const auto* sample = std::get_if<PerfSample>(&parsed->record)) {
      ++samples;
      observe(self, *sample, receiver);
    } else if (const auto* lost = std::get_if<collectors::PerfLost>(&parsed->record)) {
      count(counts().lost, lost->records);
    } else if (const auto* throttle = std::get_if<collectors::PerfThrottle>(&parsed->record)) {
      count(counts().throttled, throttle->begins ? 1 : 0);
    }
  }
  return samples;
}

std::uint32_t take_module_records(ThreadState& self, const EventRingReader& reader, const Receiver& receiver) {
  collectors::ModuleRing ring(reader.whole());
  const std::uint64_t head = ring.head();
  std::uint64_t tail = ring.tail();
  if (head - tail > ring.capacity()) {
    give_up(self);
    return 0;
  }
  const std::uint64_t lost = ring.lost();
  count(counts().lost, lost - std::min(self.memory.lost, lost));
  self.memory.lost = lost;
  std::uint32_t samples = 0;
  for (; tail != head && samples < most_records; ++samples) {
    std::array<std::byte, collectors::ibs_raw_bytes> raw;
    PerfSample sample = collectors::perf_sample_of(ring.record(tail), raw);
    ring.give_back(++tail);
    sample.event = self.memory.event[0].event.id;
    observe(self, sample, receiver);
  }
  return samples;
}

}  // namespace

bool MemoryEvents::wanted() { return settings().events != 0; }

bool MemoryEvents::allowed() { return runtime().config.perf_allowed != 0 || by_module(); }

bool MemoryEvents::open(ThreadState& self) {
  const long result = open_all(self);
  if (result < 0) {
    close(self);
    if (result == -EAGAIN) {  // another try may do
      return false;
    }
    note_refusal(self, refusal_of(result), static_cast<int>(-result));
    return false;
  }
  self.memory.count = settings().events;
  for (std::uint32_t i = 0; i < self.memory.count; ++i) {
    start(self.memory.event[i], settings().event[i]);
  }
  return true;
}

void MemoryEvents::close(ThreadState& thread) {
  for (std::uint32_t i = 0; i < thread.memory.count; ++i) {
    ThreadMemoryEvents::Event& each = thread.memory.event[i];
    if (EventCounts counted; counts_of(each.event, counted) >= 0) {
      look_at(thread.memory, each.pace, counted);
    }
  }
  if (by_module()) {
    stop_ibs_context(thread.memory.event[0].event);
  }
  close_all(thread);
  unmap_event_ring(thread.memory.ring);
  thread.memory.count = 0;
}

void MemoryEvents::forget(ThreadState& thread) {
  close_all(thread);
  forget_event_ring(thread.memory.ring);
  thread.memory.without_counter = false;
  thread.memory.count = 0;
}

std::uint32_t MemoryEvents::deliver(ThreadState& self, Take take, void* context) {
  EventRingReader reader(self.memory.ring);
  if (!reader.may()) {
    return 0;
  }
  const Receiver receiver{take, context};
  return by_module() ? take_module_records(self, reader, receiver) : take_records(self, reader, receiver);
}

void MemoryEvents::keep_pace(ThreadState& self, std::uint64_t wanted_ns) {
  const std::uint64_t now_ns = monotonic_ns();
  for (std::uint32_t i = 0; i < self.memory.count; ++i) {
    ThreadMemoryEvents::Event& each = self.memory.event[i];
    collectors::EventPace& pace = each.pace;
    if (!pace.due(now_ns)) {
      continue;
    }
    EventCounts counted{pace.counted(), 0, pace.running_ns()};
    if (!pace.sampled() || by_module()) {  // its samples do not tell
      if (counts_of(each.event, counted) < 0) {
        continue;
      }
      look_at(self.memory, pace, counted);
    }
    set_period(each.event, pace.next_period(now_ns, wanted_ns, counted.count, counted.running_ns, self.random));
    learned_period[i].store(pace.period(), std::memory_order_relaxed);
  }
}

std::uint64_t MemoryEvents::delivery_ns() { return runtime().config.perf_sample_cost_ns; }

void note_refusal(ThreadState& self, profile::MemoryRefusal reason, int error) {
  profile::MemoryCounts& all = counts();
  all.clock_alone.fetch_add(self.memory.refused ? 0 : 1, std::memory_order_relaxed);
  self.memory.refused = true;
  all.refusal_error.store(error, std::memory_order_relaxed);
  all.refusal.store(static_cast<std::uint32_t>(reason), std::memory_order_relaxed);
}

}  // namespace crosstalk::in_target
