// SPDX-License-Identifier: Apache-2.0
// The tables of a profile, but `meta` (session_meta.h). Each lists its columns once: its definition, its statements,
// the values that the writer binds and the checks of the reader come from this list. docs/profile-schema.md says what
// every column means. Internal to the writer and the reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "profile/branch_trace.h"
#include "profile/column_kinds.h"
#include "profile/counter_reading.h"
#include "profile/model.h"
#include "profile/thread_wait_row.h"

namespace crosstalk::profile {

/// The measurement of a sample by another source than a clock, its event, and its calls if the recording has them.
struct SampleMeasurement {
  std::int64_t sample = 0;  // its row
  Measurement measurement;
  EventId event;
  CallChainId call_chain;
};
/// The measurement of a watch's sample.
struct WatchMeasurement {
  WatchId watch;
  Measurement measurement;
};
/// The result of a probe of a line.
struct LineProbeRow {
  WatchId watch;
  ProbedLine probe;
};
/// A piece of a watched line: its watch, and its index among the watch's words.
struct WatchWordRow {
  WatchId watch;
  std::uint8_t index = 0;
  WatchWord word;
};

/// Unit of sample.previous_handler: it saves a byte a sample, and is finer than a handler can be measured.
inline constexpr std::uint32_t handler_unit_ns = 100;

template <class... Rows>
struct RowKinds {};
/// A table for each.
using StoredRows = RowKinds<ProcessRow, ThreadRow, ModuleRow, SampleRow, SampleMeasurement, EventRow, CallChainRow,
                            WatchRow, WatchMeasurement, LineProbeRow, WatchWordRow, TrapRow, BlockRow, SharedMappingRow,
                            LookaheadRow, ThreadCreationRow, ThreadWaitRow, SampledWaitRow, RegionRow, ThreadRegionRow,
                            CounterRow, ReadingRow, StackRow, KeptFileRow, MessageRow>;

struct Table {
  const char* name;
  const char* id = "";          // the column that is the rows' number
  const char* constraint = "";  // of the definition
  const char* options = "";     // and what follows it
  bool replaces = false;        // a row replaces that with the same key
  const char* conflict = "";    // or is merged with it
  const char* order = "";       // in which rows are read
};

template <class Row>
inline constexpr Table table_of{};
template <>
inline constexpr Table table_of<ProcessRow>{.name = "process", .id = "id", .replaces = true, .order = "id"};
template <>
inline constexpr Table table_of<ThreadRow>{.name = "thread", .id = "id", .replaces = true, .order = "id"};
template <>
inline constexpr Table table_of<ModuleRow>{.name = "module",
                                           .constraint = "PRIMARY KEY(process, begin, loaded_ns)",
                                           .options = "WITHOUT ROWID",
                                           .replaces = true};
template <>
inline constexpr Table table_of<SampleRow>{.name = "sample", .order = "sample.rowid"};
template <>
inline constexpr Table table_of<SampleMeasurement>{.name = "sample_measurement", .id = "sample"};
template <>
inline constexpr Table table_of<EventRow>{.name = "event", .id = "id", .replaces = true, .order = "id"};
template <>
inline constexpr Table table_of<CallChainRow>{.name = "call_chain", .id = "id", .order = "id"};
template <>
inline constexpr Table table_of<WatchRow>{.name = "watch", .id = "id", .replaces = true, .order = "id"};
template <>
inline constexpr Table table_of<WatchMeasurement>{
    .name = "watch_measurement", .id = "watch", .replaces = true, .order = "watch"};
template <>
inline constexpr Table table_of<LineProbeRow>{.name = "line_probe", .id = "watch", .replaces = true, .order = "watch"};
template <>
inline constexpr Table table_of<WatchWordRow>{.name = "watch_word",
                                              .constraint = "PRIMARY KEY(watch, word)",
                                              .options = "WITHOUT ROWID",
                                              .replaces = true,
                                              .order = "watch, word"};
template <>
inline constexpr Table table_of<TrapRow>{.name = "trap"};
template <>
inline constexpr Table table_of<BlockRow>{.name = "block"};
template <>
inline constexpr Table table_of<SharedMappingRow>{.name = "shared_mapping"};
template <>
inline constexpr Table table_of<LookaheadRow>{.name = "lookahead", .order = "rowid"};
template <>
inline constexpr Table table_of<ThreadCreationRow>{.name = "thread_creation", .order = "rowid"};
template <>
inline constexpr Table table_of<ThreadWaitRow>{.name = "thread_wait",
                                               .constraint = "PRIMARY KEY(thread, kind, site)",
                                               .options = "WITHOUT ROWID",
                                               .replaces = true,
                                               .order = "thread, kind, site"};
template <>
inline constexpr Table table_of<SampledWaitRow>{.name = "sampled_wait", .order = "thread, time, rowid"};
template <>
inline constexpr Table table_of<RegionRow>{.name = "region", .id = "id", .replaces = true, .order = "id"};
template <>
inline constexpr Table table_of<ThreadRegionRow>{.name = "thread_region",
                                                 .constraint = "PRIMARY KEY(thread, region)",
                                                 .options = "WITHOUT ROWID",
                                                 .replaces = true,
                                                 .order = "thread, region"};
template <>
inline constexpr Table table_of<CounterRow>{.name = "counter", .id = "id", .replaces = true, .order = "id"};
template <>
inline constexpr Table table_of<ReadingRow>{.name = "reading", .order = "rowid"};
template <>
inline constexpr Table table_of<StackRow>{.name = "stack", .id = "id", .order = "id"};
template <>
inline constexpr Table table_of<KeptFileRow>{
    .name = "kept_file", .constraint = "PRIMARY KEY(path, build_id, content_hash)", .replaces = true};
template <>
inline constexpr Table table_of<MessageRow>{
    .name = "message",
    .constraint = "PRIMARY KEY(code, text)",
    .options = "WITHOUT ROWID",
    .conflict = "ON CONFLICT(code, text) DO UPDATE SET count = count + excluded.count"};

// How a row of each table is visited, column by column. `Columns` is ColumnNames (schema.h), BoundColumns
// (bound_columns.h) or ColumnScan (column_scan.h). `demand`: of a row that is read, whether it makes sense.

template <class Columns, class Row>
using In = std::conditional_t<Columns::reads, Row, const Row>;

template <class Columns>
void visit_row(Columns& c, In<Columns, ProcessRow>& row) {
  c.column("id", row.id, ProcessNumber{});
  c.column("pid", row.pid, Number{});
  c.column("parent_pid", row.parent_pid, Number{});
  c.column("executable", row.executable, Text{});
  c.column("command", row.command, Text{});
  c.column("begin_ns", row.begin_ns, Number{});
  c.column("end_ns", row.end_ns, NumberOrNull{});
  c.column("exit_status", row.exit_status, Optional{Number{}});
  c.column("after_fork", row.after_fork, Number{});
  c.column("modules_of", row.modules_of, Optional{ProcessNumber{}});
  c.column("observation", row.observation, EnumeratorOrNull{Observation::unknown, Observation::none});
  c.column("unobserved_because", row.unobserved_because, TextOrNull{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, ThreadRow>& row) {
  c.column("id", row.id, ThreadInFile{});
  c.column("process", row.process, ProcessNumber{});
  c.column("tid", row.tid, Number{});
  c.column("name", row.name, Text{});
  c.column("begin_ns", row.begin_ns, Number{});
  c.column("end_ns", row.end_ns, NumberOrNull{});
  c.column("stack_low", row.stack_low, NumberOrNull{});
  c.column("stack_high", row.stack_high, NumberOrNull{});
  c.column("thread_pointer", row.thread_pointer, NumberOrNull{});
  c.column("cpu_ns", row.cpu_ns, Number{});
  c.column("samples", row.samples, Number{});
  c.column("traps", row.traps, Number{});
  c.column("armed", row.armed, Number{});
  c.column("lost", row.lost, Number{});
  c.column("handlers_ns", row.handlers_ns, Number{});
  c.column("switches_ns", row.switches_ns, Number{});
  c.column("switches", row.switches, Number{});
  c.column("handler_samples_ns", row.handler_samples_ns, Number{});
  c.column("clock", row.clock, Enumerator{ClockKind::automatic, ClockKind::perf});
  c.column("period_us", row.period_us, Number{});
  c.column("start_routine", row.start_routine, NumberOrNull{});
  c.column("ran_ns", row.ran_ns, NumberOrNull{});
  c.column("waited_ns", row.waited_ns, NumberOrNull{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, ModuleRow>& row) {
  c.column("process", row.process, ProcessNumber{});
  c.column("begin", row.begin, Number{});
  c.column("loaded_ns", row.loaded_ns, Number{});
  c.column("unloaded_ns", row.unloaded_ns, NumberOrNull{});
  c.column("bias", row.bias, Number{});
  c.column("end", row.end, Number{});
  c.column("tls_offset", row.tls_offset, Number{});
  c.column("tls_size", row.tls_size, Number{});
  c.column("build_id", row.build_id, TextOrNull{});
  c.column("path", row.path, Text{});
  c.column("is_vdso", row.is_vdso, Number{});
  c.column("content_hash", row.content_hash, NumberOrNull{});
  c.column("file_offset", row.file_offset, Optional{Number{}});
  c.demand(row.end >= row.begin, "end", static_cast<std::int64_t>(row.end));
  const bool hexadecimal = row.build_id.find_first_not_of("0123456789abcdef") == std::string::npos;
  c.demand(hexadecimal && row.build_id.size() % 2 == 0, "the length of build_id",
           static_cast<std::int64_t>(row.build_id.size()));
}

template <class Columns>
void visit_row(Columns& c, In<Columns, SampleRow>& row) {
  c.column("thread", row.thread, ThreadNumber{});
  c.column("time", row.time_ns, Time{});
  c.column("ip", row.ip, Number{});
  c.column("access_offset", row.access_ip, OffsetOrNull{row.ip});
  c.column("address", row.address, NumberOrNull{});
  c.column("cpu_ns", row.cpu_ns, Number{});
  if (c.is_whole()) {
    c.column("watch", row.watch, NumberOrNull{});
    c.column("stack", row.stack, NumberOrNull{});
  }
  c.column("cpu", row.cpu, Number{});
  c.column("width", row.width, NumberOrNull{});
  c.column("access", row.access, Enumerator{AccessKind::none, AccessKind::load_store});
  if (c.is_whole()) {
    c.column("origin", row.from, Enumerator{AddressFrom::none, AddressFrom::hardware});
  }
  c.column("flags", row.flags, Number{all_sample_flags});
  if (c.is_whole()) {
    c.column("previous_handler", row.previous_handler_ns, MultipleOrNull{handler_unit_ns});
  }
  c.column("registers", row.registers, StepsOrNull{row.thread, row.ip});
  c.column("region", row.region, RegionOrNull{});
}

template <class Columns>
void visit_measurement(Columns& c, In<Columns, Measurement>& measurement) {
  c.column("source", measurement.source, Enumerator{SourceKind::clock, SourceKind::counter});
  c.column("unit", measurement.unit, Enumerator{WeightUnit::ns, WeightUnit::occurrences});
  c.column("weight", measurement.weight, Number{});
  c.column("latency_cycles", measurement.latency_cycles, NumberOrNull{});
  c.column("data_source", measurement.data_source, NumberOrNull{});
}

/// All columns but the sample's row.
template <class Columns>
void visit_rest(Columns& c, In<Columns, SampleMeasurement>& row) {
  visit_measurement(c, row.measurement);
  c.column("event", row.event, NumberOrNull{});
  c.column("call_chain", row.call_chain, NumberOrNull{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, SampleMeasurement>& row) {
  c.column("sample", row.sample, Number{});
  visit_rest(c, row);
}

template <class Columns>
void visit_row(Columns& c, In<Columns, EventRow>& row) {
  c.column("id", row.id, Number{});
  c.column("name", row.name, Text{});
  c.column("source", row.source, Enumerator{SourceKind::clock, SourceKind::counter});
  c.column("unit", row.unit, Enumerator{WeightUnit::ns, WeightUnit::occurrences});
  c.column("period", row.period, NumberOrNull{});
  c.column("least_latency_cycles", row.least_latency_cycles, NumberOrNull{});
  c.column("at_access", row.at_access, Number{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, CallChainRow>& row) {
  c.column("id", row.id, Number{});
  c.column("addresses", row.addresses, Packed<CallChainCodec>{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, WatchRow>& row) {
  c.column("id", row.id, Number{});
  c.column("thread", row.thread, ThreadNumber{});
  c.column("time", row.time_ns, Time{});
  c.column("line", row.line, Number{});
  c.column("threads", row.threads, Number{});
  c.column("armed", row.armed, Number{});
  c.column("suspected", row.suspected, Number{});
  c.column("horizon_ns", row.horizon_ns, Number{});
  c.column("sample_ip", row.sample_ip, NumberOrNull{});
  c.column("sample_access_offset", row.sample_access_ip, OffsetOrNull{row.sample_ip});
  c.column("sample_address", row.sample_address, NumberOrNull{});
  c.column("sample_cpu_ns", row.sample_cpu_ns, Number{});
  c.column("sample_width", row.sample_width, NumberOrNull{});
  c.column("sample_access", row.sample_access, Enumerator{AccessKind::none, AccessKind::load_store});
  c.column("sample_origin", row.sample_from, Enumerator{AddressFrom::none, AddressFrom::hardware});
  c.column("sample_flags", row.sample_flags, Number{all_sample_flags});
  c.column("sample_cpu", row.sample_cpu, Number{});
  c.column("sample_stack", row.sample_stack, NumberOrNull{});
  c.column("close", row.close, Optional{Enumerator{CloseReason::horizon, CloseReason::stopped}});
  c.column("close_time", row.close_ns, TimeIf{row.close.has_value()});
  c.column("state", row.state, Optional{Packed<LineStateCodec>{}});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, WatchMeasurement>& row) {
  c.column("watch", row.watch, Number{});
  visit_measurement(c, row.measurement);
}

template <class Columns>
void visit_row(Columns& c, In<Columns, LineProbeRow>& row) {
  c.column("watch", row.watch, Number{});
  c.column("changed", row.probe.changed, Number{});
  c.column("gap_ns", row.probe.gap_ns, Number{});
  c.column("value", row.probe.value, Number{});
  c.column("value_bytes", row.probe.value_bytes, Number{sizeof row.probe.value});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, WatchWordRow>& row) {
  c.column("watch", row.watch, Number{});
  c.column("word", row.index, Number{max_watch_words - 1});
  c.column("offset", row.word.offset, Number{});
  c.column("length", row.word.length, Number{8});
  c.column("probability", row.word.probability, Fraction{});
  c.demand((row.word.length & (row.word.length - 1U)) == 0, "length", row.word.length);
}

template <class Columns>
void visit_row(Columns& c, In<Columns, TrapRow>& row) {
  c.column("watch", row.watch, Number{});
  c.column("thread", row.thread, ThreadNumber{});
  c.column("sequence", row.sequence, Number{});
  c.column("time", row.time_ns, Time{});
  c.column("ip", row.ip, Number{});
  c.column("cpu", row.cpu, Number{});
  c.column("word", row.word, Number{max_watch_words - 1});
  c.column("write_only", row.write_only, Number{});
  c.column("registers", row.registers, Packed<RegistersCodec>{});
  c.column("stack", row.stack, NumberOrNull{});
  c.column("line", row.line, NumberOrNull{});
  c.column("frame", row.frame, Optional{Packed<FrameCodec>{}});
  c.column("state", row.state, Optional{Packed<LineStateCodec>{}});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, BlockRow>& row) {
  c.column("process", row.process, ProcessNumber{});
  c.column("time", row.time_ns, Time{});
  c.column("begin", row.begin, Number{});
  c.column("bytes", row.bytes, Number{});
  c.column("site", row.site, NumberOrNull{});
  c.column("kind", row.kind, Enumerator{BlockKind::heap, BlockKind::mapping});
  c.column("stack", row.stack, NumberOrNull{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, SharedMappingRow>& row) {
  c.column("process", row.process, ProcessNumber{});
  c.column("time", row.time_ns, Time{});
  c.column("begin", row.begin, Number{});
  c.column("bytes", row.bytes, Number{});
  c.column("file_offset", row.file_offset, Number{});
  c.column("device", row.device, Number{});
  c.column("inode", row.inode, Number{});
  c.column("name", row.name, Text{});
  c.demand(row.begin + row.bytes > row.begin, "bytes", static_cast<std::int64_t>(row.bytes));
}

template <class Columns>
void visit_row(Columns& c, In<Columns, LookaheadRow>& row) {
  c.column("thread", row.thread, ThreadNumber{});
  c.column("time", row.time_ns, Time{});
  c.column("begin", row.begin, Number{});
  c.column("head", row.head, NumberOrNull{});
  c.column("instructions", row.instructions, Number{max_lookahead_instructions});
  c.column("passages", row.passages, Number{max_lookahead_instructions});
  c.column("cost_ns", row.cost_ns, Number{});
  c.column("end", row.end, Enumerator{LookaheadEnd::whole, LookaheadEnd::room});
  c.column("branches", row.branches, Blob{});
  c.demand([&row] { return unpack_branch_trace(row.branches, row.begin).has_value(); }, "the length of branches",
           static_cast<std::int64_t>(row.branches.size()));
}

template <class Columns>
void visit_row(Columns& c, In<Columns, ThreadCreationRow>& row) {
  c.column("thread", row.thread, ThreadNumber{});
  c.column("time", row.time_ns, Time{});
  c.column("stack", row.stack, Number{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, ThreadWaitRow>& row) {
  c.column("thread", row.thread, ThreadNumber{});
  c.column("kind", row.kind, Enumerator{WaitKind::all, last_wait_kind});
  c.column("site", row.site, Number{});
  c.column("waited_ns", row.waited_ns, Number{});
  c.column("count", row.count, Number{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, SampledWaitRow>& row) {
  c.column("thread", row.thread, ThreadNumber{});
  c.column("time", row.time_ns, Time{});
  c.column("kind", row.kind, Enumerator{LookKind::all, LookKind::waiting});
  c.column("futex", row.futex, NumberOrNull{});
  c.column("looked_ns", row.looked_ns, Number{});
  c.column("spread_ns", row.spread_ns, Number{});
  c.column("slept_ns", row.slept_ns, Optional{Number{}});
  c.column("looks", row.looks, Number{});
  c.column("stack", row.stack, NumberOrNull{});
  c.demand(row.looks != 0, "looks", 0);
}

template <class Columns>
void visit_row(Columns& c, In<Columns, RegionRow>& row) {
  c.column("id", row.id, Number{});
  c.column("parent", row.parent, NumberOrNull{row.id.value == 0 ? 0 : row.id.value - 1});
  c.column("name", row.name, Text{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, ThreadRegionRow>& row) {
  constexpr const char* classes[wait_classes] = {"lock_ns", "barrier_ns", "condition_ns"};
  c.column("thread", row.thread, ThreadNumber{});
  c.column("region", row.region, RegionNumber{});
  c.column("entries", row.entries, Number{});
  c.column("elapsed_ns", row.elapsed_ns, Number{});
  for (std::size_t of = 0; of < wait_classes; ++of) {
    c.column(classes[of], row.waited_ns[of], Number{});
  }
  c.demand(row.region.value != 0, "region", 0);
}

template <class Columns>
void visit_row(Columns& c, In<Columns, CounterRow>& row) {
  c.column("id", row.id, Number{});
  c.column("group_number", row.group, Number{UINT16_MAX});
  c.column("name", row.name, Text{});
  c.column("event", row.event, Text{});
  c.column("unit", row.unit, Text{});
  c.column("quantity", row.quantity, Enumerator{CounterQuantity::other, last_counter_quantity});
  c.column("each", row.each, Real{});
  c.demand(row.each > 0, "each", static_cast<std::int64_t>(row.each));
}

template <class Columns>
void visit_row(Columns& c, In<Columns, ReadingRow>& row) {
  c.column("thread", row.thread, ThreadNumber{});
  c.column("time", row.time_ns, Time{});
  c.column("ip", row.ip, Number{});
  c.column("group_number", row.group, Number{UINT16_MAX});
  c.column("life", row.life, Number{});
  c.column("cpu", row.cpu, Number{});
  c.column("enabled_ns", row.enabled_ns, Number{});
  c.column("running_ns", row.running_ns, Number{});
  c.column("counts", row.counts, Packed<CountsCodec>{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, StackRow>& row) {
  c.column("id", row.id, Number{});
  if (c.leaves_out(row.id)) {
    return;
  }
  c.column("registers", row.registers, Packed<RegistersCodec>{});
  auto size = static_cast<std::uint32_t>(std::min(row.bytes.size(), max_stack_bytes));
  c.column("size", size, Number{max_stack_bytes});
  c.column("bytes", row.bytes, CompressedStack{size});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, KeptFileRow>& row) {
  c.column("path", row.path, Text{});
  c.column("build_id", row.build_id, Text{});
  c.column("content_hash", row.content_hash, Number{});
  c.column("bytes", row.bytes, StaysCompressed{});
}

template <class Columns>
void visit_row(Columns& c, In<Columns, MessageRow>& row) {
  c.column("code", row.code, Text{});
  c.column("text", row.text, Text{});
  c.column("count", row.count, Number{});
}

}  // namespace crosstalk::profile
