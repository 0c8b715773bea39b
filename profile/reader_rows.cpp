// SPDX-License-Identifier: Apache-2.0
#include "profile/reader_rows.h"

#include <algorithm>
#include <map>

#include "profile/branch_trace.h"
#include "profile/codec.h"
#include "profile/schema.h"

namespace crosstalk::profile {
namespace {

std::uint64_t offset_or_zero(ColumnScan& scan, std::uint64_t from) {
  if (scan.next_is_null()) {
    scan.skip();
    return 0;
  }
  return from + scan.bits();
}

Registers registers_of(ColumnScan& scan) {
  const std::optional<Registers> registers = unpack_registers(scan.blob());
  if (!registers) {
    scan.reject("registers", 0);
  }
  return registers.value_or(Registers{});
}

std::optional<LineState> line_state_of(ColumnScan& scan) {
  if (scan.next_is_null()) {
    scan.skip();
    return std::nullopt;
  }
  const std::optional<LineState> state = unpack_line_state(scan.blob());
  if (!state) {
    scan.reject("state", 0);
  }
  return state;
}

/// The reader's number of the thread.
ThreadId thread_id(ColumnScan& scan, const Bounds& bounds) {
  const auto stored = scan.index<ThreadId>("thread", bounds.threads);
  return stored.value < bounds.thread_numbers.size() ? ThreadId{bounds.thread_numbers[stored.value]} : stored;
}

AccessKind access_of(ColumnScan& scan) { return scan.enumerator("access", AccessKind::none, AccessKind::load_store); }

Measurement measurement_of(ColumnScan& scan) {
  Measurement measurement;
  measurement.source = scan.enumerator("source", SourceKind::clock, SourceKind::counter);
  measurement.unit = scan.enumerator("unit", WeightUnit::ns, WeightUnit::occurrences);
  measurement.weight = scan.bits();
  measurement.latency_cycles = scan.number<std::uint32_t>("latency_cycles");
  measurement.data_source = scan.bits();
  return measurement;
}

AddressFrom origin_of(ColumnScan& scan) { return scan.enumerator("origin", AddressFrom::none, AddressFrom::hardware); }

}  // namespace

std::int32_t ColumnScan::int32(const char* name) {
  const std::int64_t value = row_->integer(column_++);
  if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max()) {
    reject(name, value);
    return 0;
  }
  return static_cast<std::int32_t>(value);
}

float ColumnScan::fraction(const char* name) {
  const double value = row_->real(column_++);
  if (!(value >= 0 && value <= 1)) {
    reject(name, static_cast<std::int64_t>(value > 1) * 2 - 1);
    return 0;
  }
  return static_cast<float>(value);
}

void ColumnScan::reject(const char* name, std::int64_t value) {
  if (error_.empty()) {
    error_ = std::string(name) + " is " + std::to_string(value);
  }
}

ProcessRow process_of(ColumnScan& scan, const Bounds& bounds) {
  ProcessRow row;
  row.id = scan.index<ProcessId>("process id", bounds.processes);
  row.pid = scan.int32("pid");
  row.parent_pid = scan.int32("parent_pid");
  row.executable = scan.text();
  row.command = scan.text();
  row.begin_ns = scan.bits();
  row.end_ns = scan.bits();
  if (scan.next_is_null()) {
    scan.skip();
  } else {
    row.exit_status = scan.int32("exit_status");
  }
  row.after_fork = scan.flag("after_fork");
  if (scan.next_is_null()) {
    scan.skip();
  } else {
    row.modules_of = scan.index<ProcessId>("modules_of", bounds.processes);
  }
  row.observation = scan.enumerator("observation", Observation::unknown, Observation::none);
  row.unobserved_because = scan.text();
  return row;
}

std::vector<std::uint32_t> numbers_by_creation(const std::vector<ThreadRow>& threads) {
  constexpr std::int64_t half_round = 1 << 21;  // of as many ids as a kernel has
  std::map<std::uint32_t, std::vector<std::uint32_t>> by_process;
  for (std::uint32_t i = 0; i < threads.size(); ++i) {
    by_process[threads[i].process.value].push_back(i);
  }
  std::vector<std::uint32_t> numbers(threads.size());
  for (const auto& [process, places] : by_process) {
    std::vector<std::uint32_t> made = places;
    const auto [least, most] = std::minmax_element(
        made.begin(), made.end(), [&](std::uint32_t a, std::uint32_t b) { return threads[a].tid < threads[b].tid; });
    const bool came_round = std::int64_t{threads[*most].tid} - threads[*least].tid > half_round;
    std::stable_sort(made.begin(), made.end(), [&](std::uint32_t a, std::uint32_t b) {
      return came_round ? threads[a].begin_ns < threads[b].begin_ns : threads[a].tid < threads[b].tid;
    });
    for (std::size_t i = 0; i < made.size(); ++i) {
      numbers[made[i]] = places[i];
    }
  }
  return numbers;
}

ThreadRow thread_of(ColumnScan& scan, const Bounds& bounds) {
  ThreadRow row;
  row.id = scan.index<ThreadId>("thread id", bounds.threads);
  row.process = scan.index<ProcessId>("process", bounds.processes);
  row.tid = scan.int32("tid");
  row.name = scan.text();
  row.begin_ns = scan.bits();
  row.end_ns = scan.bits();
  row.stack_low = scan.bits();
  row.stack_high = scan.bits();
  row.thread_pointer = scan.bits();
  row.cpu_ns = scan.bits();
  row.samples = scan.bits();
  row.traps = scan.bits();
  row.armed = scan.bits();
  row.lost = scan.bits();
  row.handlers_ns = scan.bits();
  row.switches_ns = scan.bits();
  row.switches = scan.bits();
  row.handler_samples_ns = scan.bits();
  row.clock = scan.enumerator("clock", ClockKind::automatic, ClockKind::perf);
  row.period_us = scan.number<std::uint32_t>("period_us");
  row.start_routine = scan.bits();
  row.ran_ns = scan.bits();
  row.waited_ns = scan.bits();
  return row;
}

ModuleRow module_of(ColumnScan& scan, const Bounds& bounds) {
  ModuleRow row;
  row.process = scan.index<ProcessId>("process", bounds.processes);
  row.begin = scan.bits();
  row.loaded_ns = scan.bits();
  row.unloaded_ns = scan.bits();
  row.bias = scan.bits();
  row.end = scan.bits();
  row.tls_offset = scan.signed_bits();
  row.tls_size = scan.bits();
  row.build_id = scan.text();
  row.path = scan.text();
  row.is_vdso = scan.flag("is_vdso");
  row.content_hash = scan.bits();
  row.file_offset = scan.optional_bits();
  if (row.end < row.begin) {
    scan.reject("end", static_cast<std::int64_t>(row.end));
  }
  if (row.build_id.find_first_not_of("0123456789abcdef") != std::string::npos || row.build_id.size() % 2 != 0) {
    scan.reject("the length of build_id", static_cast<std::int64_t>(row.build_id.size()));
  }
  return row;
}

KeptFileRow kept_file_of(ColumnScan& scan, const Bounds& /*bounds*/) {
  KeptFileRow row;
  row.path = scan.text();
  row.build_id = scan.text();
  row.content_hash = scan.bits();
  const auto packed = scan.blob();
  row.bytes.assign(packed.begin(), packed.end());
  return row;
}

SampleRow sample_of(ColumnScan& scan, const Bounds& bounds, SampleColumns columns,
                    std::vector<std::optional<Registers>>& last) {
  SampleRow row;
  row.thread = thread_id(scan, bounds);
  row.time_ns = bounds.time_base_ns + scan.bits();
  row.ip = scan.bits();
  row.access_ip = offset_or_zero(scan, row.ip);
  row.address = scan.bits();
  row.cpu_ns = scan.bits();
  row.cpu = scan.number<std::uint16_t>("cpu");
  row.width = scan.number<std::uint8_t>("width");
  row.access = access_of(scan);
  row.flags = scan.number<std::uint8_t>("flags", all_sample_flags);
  if (scan.next_is_null() || row.thread.value >= last.size()) {
    scan.skip();
  } else if (std::optional<Registers>& registers = last[row.thread.value]; follow_steps(scan.blob(), registers)) {
    row.registers = registers;
    (*row.registers)[Register::rip] = row.ip;
  } else {
    scan.reject("registers", 0);
  }
  row.region = RegionId{scan.number<std::uint32_t>("region", bounds.regions)};
  if (columns.parts == SampleParts::all) {
    row.watch = WatchId{scan.number<std::uint32_t>("watch")};
    row.stack = StackId{scan.number<std::uint32_t>("stack")};
    row.from = origin_of(scan);
    row.previous_handler_ns =
        scan.number<std::uint32_t>("previous_handler", UINT32_MAX / schema::handler_unit_ns) * schema::handler_unit_ns;
  }
  if (columns.measured && !scan.next_is_null()) {
    row.measurement = measurement_of(scan);
    if (row.measurement.source == SourceKind::clock) {
      row.measurement = {};  // there for its event or its calls; its weight is cpu_ns
    }
    row.event = EventId{scan.number<std::uint32_t>("event")};
    row.call_chain = CallChainId{scan.number<std::uint32_t>("call_chain")};
  }
  return row;
}

WatchRow watch_of(ColumnScan& scan, const Bounds& bounds) {
  WatchRow row;
  row.id = WatchId{scan.number<std::uint32_t>("watch id")};
  row.thread = thread_id(scan, bounds);
  row.time_ns = bounds.time_base_ns + scan.bits();
  row.line = scan.bits();
  row.threads = scan.number<std::uint32_t>("threads");
  row.armed = scan.number<std::uint32_t>("armed");
  row.suspected = scan.flag("suspected");
  row.horizon_ns = scan.bits();
  row.sample_ip = scan.bits();
  row.sample_access_ip = offset_or_zero(scan, row.sample_ip);
  row.sample_address = scan.bits();
  row.sample_cpu_ns = scan.bits();
  row.sample_width = scan.number<std::uint8_t>("sample_width");
  row.sample_access = access_of(scan);
  row.sample_from = origin_of(scan);
  row.sample_flags = scan.number<std::uint8_t>("sample_flags", all_sample_flags);
  row.sample_cpu = scan.number<std::uint16_t>("sample_cpu");
  row.sample_stack = StackId{scan.number<std::uint32_t>("sample_stack")};
  if (!scan.next_is_null()) {
    row.close = scan.enumerator("close", CloseReason::horizon, CloseReason::stopped);
    row.close_ns = bounds.time_base_ns + scan.bits();
  } else {
    scan.skip();
    scan.skip();
  }
  row.state = line_state_of(scan);
  return row;
}

MeasurementOf watch_measurement_of(ColumnScan& scan) {
  MeasurementOf of;
  of.watch = WatchId{scan.number<std::uint32_t>("watch")};
  of.measurement = measurement_of(scan);
  return of;
}

LineProbeOf line_probe_of(ColumnScan& scan) {
  LineProbeOf of;
  of.watch = WatchId{scan.number<std::uint32_t>("watch")};
  of.probe.changed = scan.bits();
  of.probe.gap_ns = scan.number<std::uint32_t>("gap_ns");
  of.probe.value = scan.bits();
  of.probe.value_bytes = scan.number<std::uint8_t>("value_bytes", sizeof of.probe.value);
  return of;
}

WatchWordOf watch_word_of(ColumnScan& scan) {
  WatchWordOf of;
  of.watch = WatchId{scan.number<std::uint32_t>("watch")};
  of.index = scan.number<std::uint8_t>("word", max_watch_words - 1);
  of.word.offset = scan.number<std::uint8_t>("offset");
  of.word.length = scan.number<std::uint8_t>("length", 8);
  of.word.probability = scan.fraction("probability");
  if ((of.word.length & (of.word.length - 1U)) != 0) {
    scan.reject("length", of.word.length);
  }
  return of;
}

TrapRow trap_of(ColumnScan& scan, const Bounds& bounds) {
  TrapRow row;
  row.watch = WatchId{scan.number<std::uint32_t>("watch")};
  row.thread = thread_id(scan, bounds);
  row.sequence = scan.number<std::uint32_t>("sequence");
  row.time_ns = bounds.time_base_ns + scan.bits();
  row.ip = scan.bits();
  row.cpu = scan.number<std::uint16_t>("cpu");
  row.word = scan.number<std::uint8_t>("word", max_watch_words - 1);
  row.write_only = scan.flag("write_only");
  row.registers = registers_of(scan);
  row.stack = StackId{scan.number<std::uint32_t>("stack")};
  row.line = scan.bits();
  if (scan.next_is_null()) {
    scan.skip();
  } else if (const auto words = unpack_registers(scan.blob())) {
    std::copy_n(words->value.begin(), trap_frame_words, row.frame.emplace().begin());
  } else {
    scan.reject("frame", 0);
  }
  row.state = line_state_of(scan);
  return row;
}

BlockRow block_of(ColumnScan& scan, const Bounds& bounds) {
  BlockRow row;
  row.process = scan.index<ProcessId>("process", bounds.processes);
  row.time_ns = bounds.time_base_ns + scan.bits();
  row.begin = scan.bits();
  row.bytes = scan.bits();
  row.site = scan.bits();
  row.kind = scan.enumerator("kind", BlockKind::heap, BlockKind::mapping);
  row.stack = StackId{scan.number<std::uint32_t>("stack")};
  return row;
}

SharedMappingRow shared_mapping_of(ColumnScan& scan, const Bounds& bounds) {
  SharedMappingRow row;
  row.process = scan.index<ProcessId>("process", bounds.processes);
  row.time_ns = bounds.time_base_ns + scan.bits();
  row.begin = scan.bits();
  row.bytes = scan.bits();
  row.file_offset = scan.bits();
  row.device = scan.bits();
  row.inode = scan.bits();
  row.name = scan.text();
  if (row.bytes == 0 || row.begin + row.bytes <= row.begin) {
    scan.reject("bytes", static_cast<std::int64_t>(row.bytes));
  }
  return row;
}

ThreadCreationRow thread_creation_of(ColumnScan& scan, const Bounds& bounds) {
  ThreadCreationRow row;
  row.thread = thread_id(scan, bounds);
  row.time_ns = bounds.time_base_ns + scan.bits();
  row.stack = StackId{scan.number<std::uint32_t>("stack")};
  return row;
}

ThreadWaitRow thread_wait_of(ColumnScan& scan, const Bounds& bounds) {
  ThreadWaitRow row;
  row.thread = thread_id(scan, bounds);
  row.kind = scan.enumerator("kind", WaitKind::all, last_wait_kind);
  row.site = scan.bits();
  row.waited_ns = scan.bits();
  row.count = scan.bits();
  return row;
}

RegionRow region_of(ColumnScan& scan) {
  RegionRow row;
  row.id = RegionId{scan.number<std::uint32_t>("region id")};
  row.parent = RegionId{scan.number<std::uint32_t>("parent", row.id.value == 0 ? 0 : row.id.value - 1)};
  row.name = scan.text();
  return row;
}

ThreadRegionRow thread_region_of(ColumnScan& scan, const Bounds& bounds) {
  ThreadRegionRow row;
  row.thread = thread_id(scan, bounds);
  row.region = RegionId{scan.number<std::uint32_t>("region", bounds.regions)};
  if (row.region.value == 0) {
    scan.reject("region", 0);
  }
  row.entries = scan.bits();
  row.elapsed_ns = scan.bits();
  for (std::uint64_t& waited_ns : row.waited_ns) {
    waited_ns = scan.bits();
  }
  return row;
}

void read_lookahead(ColumnScan& scan, const Bounds& bounds, LookaheadRow& row) {
  row.thread = thread_id(scan, bounds);
  row.time_ns = bounds.time_base_ns + scan.bits();
  row.begin = scan.bits();
  row.head = scan.bits();
  row.instructions = scan.number<std::uint32_t>("instructions", max_lookahead_instructions);
  row.passages = scan.number<std::uint32_t>("passages", max_lookahead_instructions);
  row.cost_ns = scan.number<std::uint32_t>("cost_ns");
  row.end = scan.enumerator("end", LookaheadEnd::whole, LookaheadEnd::room);
  const std::span<const std::uint8_t> branches = scan.blob();
  row.branches.assign(branches.begin(), branches.end());
  if (!unpack_branch_trace(branches, row.begin)) {
    scan.reject("the length of branches", static_cast<std::int64_t>(branches.size()));
  }
}

EventRow event_of(ColumnScan& scan) {
  EventRow row;
  row.id = EventId{scan.number<std::uint32_t>("event id")};
  row.name = scan.text();
  row.source = scan.enumerator("source", SourceKind::clock, SourceKind::counter);
  row.unit = scan.enumerator("unit", WeightUnit::ns, WeightUnit::occurrences);
  row.period = scan.bits();
  row.least_latency_cycles = scan.number<std::uint32_t>("least_latency_cycles");
  row.at_access = scan.flag("at_access");
  return row;
}

CounterRow counter_of(ColumnScan& scan) {
  CounterRow row;
  row.id = scan.number<std::uint32_t>("counter id");
  row.group = scan.number<std::uint32_t>("group_number", UINT16_MAX);
  row.name = scan.text();
  row.event = scan.text();
  row.unit = scan.text();
  row.quantity = scan.enumerator("quantity", CounterQuantity::other, last_counter_quantity);
  row.each = scan.real();
  if (!(row.each > 0)) {
    scan.reject("each", static_cast<std::int64_t>(row.each));
  }
  return row;
}

void read_reading(ColumnScan& scan, const Bounds& bounds, ReadingRow& row) {
  row.thread = thread_id(scan, bounds);
  row.time_ns = bounds.time_base_ns + scan.bits();
  row.ip = scan.bits();
  row.group = scan.number<std::uint32_t>("group_number", UINT16_MAX);
  row.life = scan.number<std::uint32_t>("life");
  row.cpu = scan.number<std::uint16_t>("cpu");
  row.enabled_ns = scan.bits();
  row.running_ns = scan.bits();
  const std::span<const std::uint8_t> packed = scan.blob();
  if (!unpack_counts(packed, most_group_counters, row.counts)) {
    scan.reject("the length of counts", static_cast<std::int64_t>(packed.size()));
  }
}

void read_call_chain(ColumnScan& scan, CallChainRow& row) {
  row.id = CallChainId{scan.number<std::uint32_t>("call chain id")};
  const std::span<const std::uint8_t> packed = scan.blob();
  if (!unpack_call_chain(packed, row.addresses)) {
    scan.reject("the length of addresses", static_cast<std::int64_t>(packed.size()));
  }
}

MessageRow message_of(ColumnScan& scan) {
  MessageRow row;
  row.code = scan.text();
  row.text = scan.text();
  row.count = scan.bits();
  return row;
}

StackId stack_id_of(ColumnScan& scan) { return StackId{scan.number<std::uint32_t>("stack id")}; }

void read_stack(ColumnScan& scan, StackRow& row) {
  row.registers = registers_of(scan);
  const auto size = scan.number<std::uint32_t>("size", max_stack_bytes);
  if (!unpack_stack(scan.blob(), row.bytes) || row.bytes.size() != size) {
    scan.reject("size", size);
  }
}

}  // namespace crosstalk::profile
