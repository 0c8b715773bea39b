// SPDX-License-Identifier: Apache-2.0
// Handles each type of record, from its bytes to rows.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/build_id.h"
#include "daemon/record_checks.h"
#include "daemon/record_decoder.h"

namespace crosstalk::daemon {

using profile::RecordView;

StackId RecordDecoder::put_stack(const Registers& registers, std::span<const std::byte> bytes) {
  stack_.id = StackId{++last_stack_};
  stack_.registers = registers;
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  stack_.bytes.assign(begin, begin + bytes.size());
  sink_->put(stack_);
  return stack_.id;
}

void RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::ThreadStart& record) {
  slot.tid = record.tid;
  profile::ThreadRow& row = processes_table_.change(thread_of(slot, record.time_ns));
  row.tid = record.tid;
  row.name = one_line(text_of(record.name));
  row.begin_ns = record.time_ns;
  row.stack_low = record.stack_low;
  row.stack_high = record.stack_high;
  row.thread_pointer = record.thread_pointer;
  if (const auto tail = view.tail(); tail.size() == sizeof row.start_routine) {
    std::memcpy(&row.start_routine, tail.data(), tail.size());
  }
}

void RecordDecoder::handle(Slot& slot, const profile::RecordView& view, const profile::Message& record) {
  std::string text = one_line(text_of(view.tail()));
  const std::string code = code_of(record.code);
  if (code == "not_observed" && slot.process) {  // the library in this process reported it
    profile::ProcessRow& row = processes_table_.change(*slot.process);
    row.observation = profile::Observation::none;
    row.unobserved_because = text;
  }
  const profile::MessageRow message{code, said_in(slot, std::move(text)), 1};
  sink_->put(message);
  if (told_ && slot.process) {
    told_->keep(*slot.process, message);
  }
}

void RecordDecoder::handle(Slot& slot, const profile::ThreadEnd& record) {
  profile::ThreadRow& row = processes_table_.change(thread_of(slot, record.time_ns));
  row.end_ns = record.time_ns;
  row.name = record.name[0] != '\0' ? one_line(text_of(record.name)) : row.name;
  if (!slot.executed_by) {  // else the slot's totals count it, without the earlier program's share
    row.cpu_ns = std::max(row.cpu_ns, record.cpu_ns);
    row.switches = std::max(row.switches, record.voluntary_switches + record.involuntary_switches);
  }
}

void RecordDecoder::handle(Slot& slot, const profile::ProcessEnd& record) {
  const ProcessId process = process_of(slot, record.time_ns);
  if (record.exec == 0) {  // the exec may still fail; otherwise the pid's next process_start ends this process
    processes_table_.change(process).end_ns = record.time_ns;
  } else {
    carried_[process.value].thread = thread_of(slot, record.time_ns);
  }
}

bool RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::ModuleLoad& record) {
  if (!possible(record)) {
    return false;
  }
  profile::ModuleRow row;
  row.process = process_of(slot, record.time_ns);
  row.loaded_ns = record.time_ns;
  row.bias = record.bias;
  row.begin = record.begin;
  row.end = record.end;
  row.tls_offset = record.tls_offset;
  row.tls_size = record.tls_size;
  row.build_id = hexadecimal(std::as_bytes(std::span(record.build_id).first(record.build_id_size)));
  row.path = text_of(view.tail());
  row.is_vdso = record.is_vdso != 0;
  if (record.is_part != 0) {
    row.file_offset = record.file_offset;
    row.build_id = modules_.build_id_of(row.process, row.path);
  }
  if (identify_) {
    identify_(slot.pid, row);
  }
  sink_->put(row);
  modules_.load(std::move(row));
  return true;
}

void RecordDecoder::handle(Slot& slot, const profile::ModuleUnload& record) {
  const ProcessId process = process_of(slot, record.time_ns);
  const std::uint64_t process_begin_ns = processes_table_.process(process).begin_ns;
  if (const auto row = modules_.unload(process, record.begin, record.time_ns, process_begin_ns)) {
    sink_->put(*row);
  }
}

bool RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::Sample& record) {
  const std::optional<StackView> stack = record.has_stack != 0 ? stack_in(view.tail()) : std::nullopt;
  if (!possible(record) || (record.has_stack != 0 && !stack)) {
    return false;
  }
  profile::SampleRow row;
  row.thread = thread_of(slot, record.time_ns);
  row.time_ns = record.time_ns;
  row.ip = record.ip;
  row.access_ip = record.access_ip;
  row.address = record.address;
  row.cpu_ns = record.cpu_ns;
  row.watch = WatchId{record.watch};
  row.stack = stack ? put_stack(stack->slice.registers, stack->bytes) : StackId{};
  row.cpu = record.cpu;
  row.width = record.width;
  row.access = record.access;
  row.from = record.from;
  row.flags = record.flags;
  row.previous_handler_ns = record.previous_handler_ns;
  row.region = regions_.id_of(slot.index, record.region);
  if (record.source != profile::SourceKind::clock) {
    row.measurement = {record.source, record.weight_unit, record.latency_cycles, record.weight, record.data_source};
    row.event = profile::EventId{record.event};
  }
  // A hardware source has the registers of its interrupt, some instructions after the sampled one.
  if ((record.flags & profile::sample_in_kernel) == 0 && record.source == profile::SourceKind::clock) {
    row.registers = record.registers;
    row.registers->operator[](Register::rip) = record.ip;
  }
  sink_->put(row);
  ++samples_;
  processes_table_.sampled(row.thread, row.time_weight_ns());
  if (row.is_of_time()) {
    modules_.sampled(process_of(slot, record.time_ns), row.ip, row.time_weight_ns());
  }
  if (record.watch != 0) {
    watches_.sample(row);
  }
  return true;
}

bool RecordDecoder::handle(Slot& slot, const profile::WatchOpen& record) {
  if (!possible(record)) {
    return false;
  }
  const ThreadId thread = thread_of(slot, record.time_ns);
  ++processes_table_.change(thread).armed;
  watches_.open(thread, record);
  return true;
}

bool RecordDecoder::handle(Slot& slot, const profile::LineProbe& record) {
  if (!possible(record)) {
    return false;
  }
  const ThreadId thread = thread_of(slot, record.time_ns);
  ++processes_table_.change(thread).armed;
  watches_.probe(thread, record);
  return true;
}

bool RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::WatchTrap& record) {
  const std::span<const std::byte> tail = view.tail();
  if (!possible(record) || (record.has_stack != 0 && record.stack.bytes > tail.size())) {
    return false;
  }
  profile::TrapRow row;
  row.watch = WatchId{record.watch};
  row.thread = thread_of(slot, record.time_ns);
  row.sequence = record.sequence;
  row.time_ns = record.time_ns;
  row.ip = record.ip;
  row.cpu = record.cpu;
  row.word = record.word;
  row.write_only = record.write_only != 0;
  row.registers = record.stack.registers;
  if (record.has_frame != 0) {
    std::copy_n(record.frame, profile::trap_frame_words, row.frame.emplace().begin());
  }
  row.line = record.line;
  if (record.has_state != 0) {
    row.state = record.state;
  }
  if (record.has_stack != 0) {
    row.stack = put_stack(record.stack.registers, tail.first(static_cast<std::size_t>(record.stack.bytes)));
  }
  sink_->put(row);
  ++traps_;
  return true;
}

bool RecordDecoder::handle(Slot& slot, const profile::Block& record) {
  if (!possible(record)) {
    return false;
  }
  profile::BlockRow row;
  row.process = process_of(slot, record.time_ns);
  row.time_ns = record.time_ns;
  row.begin = record.begin;
  row.bytes = record.bytes;
  row.site = record.site;
  row.kind = record.kind;
  sink_->put(row);
  if (told_) {
    told_->keep(row);
  }
  return true;
}

bool RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::SharedMapping& record) {
  if (!possible(record)) {
    return false;
  }
  profile::SharedMappingRow row;
  row.process = process_of(slot, record.time_ns);
  row.time_ns = record.time_ns;
  row.begin = record.begin;
  row.bytes = record.bytes;
  row.file_offset = record.file_offset;
  row.device = record.device;
  row.inode = record.inode;
  row.name = one_line(text_of(view.tail()));
  sink_->put(row);
  if (told_) {
    told_->keep(row);
  }
  return true;
}

bool RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::ThreadCreation& record) {
  const std::span<const std::byte> tail = view.tail();
  if (record.stack.bytes > tail.size()) {
    return false;
  }
  profile::ThreadCreationRow row;
  row.thread = thread_of(slot, record.time_ns);
  row.time_ns = record.time_ns;
  row.stack = put_stack(record.stack.registers, tail.first(static_cast<std::size_t>(record.stack.bytes)));
  sink_->put(row);
  if (told_) {
    told_->keep(row, stack_);
  }
  return true;
}

bool RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::SampledWait& record) {
  const std::span<const std::byte> tail = view.tail();
  if (record.stack.bytes > tail.size() || record.looks == 0 || record.kind > profile::LookKind::waiting) {
    return false;
  }
  profile::SampledWaitRow row;
  row.thread = thread_of(slot, record.time_ns);
  row.time_ns = record.time_ns;
  row.kind = record.kind;
  row.futex = record.futex;
  row.looked_ns = record.looked_ns;
  row.spread_ns = record.spread_ns;
  row.slept_ns = record.slept_known != 0 ? std::optional(record.slept_ns) : std::nullopt;
  row.looks = record.looks;
  if (row.kind == profile::LookKind::waiting) {
    row.stack = put_stack(record.stack.registers, tail.first(static_cast<std::size_t>(record.stack.bytes)));
  }
  sink_->put(row);
  return true;
}

bool RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::Lookahead& record) {
  const std::span<const std::byte> branches = view.tail();
  if (!possible(record, branches)) {
    return false;
  }
  profile::LookaheadRow row;
  row.thread = thread_of(slot, record.time_ns);
  row.time_ns = record.time_ns;
  row.begin = record.begin;
  row.head = record.head;
  row.instructions = record.instructions;
  row.passages = record.passages;
  row.cost_ns = record.cost_ns;
  row.end = record.end;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(branches.data());
  row.branches.assign(bytes, bytes + branches.size());
  sink_->put(row);
  return true;
}

bool RecordDecoder::handle(Slot& slot, const RecordView& view, const profile::CounterReading& record) {
  const std::span<const std::byte> tail = view.tail();
  if (!possible(record, tail.size())) {
    return false;
  }
  profile::ReadingRow row;
  row.thread = thread_of(slot, record.time_ns);
  row.time_ns = record.time_ns;
  row.ip = record.ip;
  row.enabled_ns = record.enabled_ns;
  row.running_ns = record.running_ns;
  row.group = record.group;
  row.life = record.life;
  row.cpu = record.cpu;
  row.counts.resize(tail.size() / sizeof(std::uint64_t));
  std::memcpy(row.counts.data(), tail.data(), tail.size());
  sink_->put(row);
  return true;
}

}  // namespace crosstalk::daemon
