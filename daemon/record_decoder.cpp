// SPDX-License-Identifier: Apache-2.0
#include "daemon/record_decoder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_set>
#include <utility>

#include "daemon/record_checks.h"

namespace crosstalk::daemon {
namespace {

using profile::RecordType;
using profile::RecordView;

/// Returns a command line's NUL-separated arguments as one shell-quoted line.
std::string command_of(std::span<const std::byte> arguments) {
  std::vector<std::string> words;
  while (!arguments.empty()) {
    words.push_back(text_of(arguments));
    arguments = arguments.subspan(std::min(arguments.size(), words.back().size() + 1));
  }
  return shell_quoted(words);
}

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

}  // namespace

RecordDecoder::RecordDecoder(RowSink& sink, std::uint32_t slot_count, Identify identify)
    : sink_(&sink),
      identify_(std::move(identify)),
      processes_table_(sink),
      watches_(sink),
      regions_(sink, slot_count),
      slots_(slot_count) {}

void RecordDecoder::open_slot(std::uint32_t slot, std::int32_t pid, std::int32_t tid, std::uint64_t now_ns) {
  slots_[slot] = Slot{true, pid, tid, now_ns, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt};
}

void RecordDecoder::announce(std::uint32_t slot, const RecordView& record) {
  if (record.type() != RecordType::process_start) {
    return;
  }
  const auto start = record.as<profile::ProcessStart>();
  const std::span<const std::byte> tail = record.tail();
  std::string executable = text_of(tail);
  constexpr std::string_view deleted = " (deleted)";
  const std::size_t rest = std::min(tail.size(), executable.size() + 1);
  if (executable.ends_with(deleted)) {  // the kernel's suffix; modules have plain paths too
    executable.resize(executable.size() - deleted.size());
  }
  announcements_.push_back({slot, start, std::move(executable), command_of(tail.subspan(rest))});
}

void RecordDecoder::heed_announcements() {
  std::stable_sort(announcements_.begin(), announcements_.end(),
                   [](const Announcement& a, const Announcement& b) { return a.start.time_ns < b.start.time_ns; });
  for (Announcement& announcement : announcements_) {
    Slot& of = slots_[announcement.slot];
    if (of.announced && of.pid == announcement.start.pid) {
      continue;  // a thread's ring does not survive an exec, so this program is already known
    }
    of.announced = true;
    if (first_program_.empty()) {
      first_program_ = announcement.executable;
    }
    of.pid = announcement.start.pid;
    of.executed_by = announcement.start.after_fork == 0 ? processes_table_.latest_process(of.pid) : std::nullopt;
    if (of.executed_by) {
      note_executing(*of.executed_by);
    }
    of.process = processes_table_.begin_process(announcement.start, std::move(announcement.executable),
                                                std::move(announcement.command));
    if (const auto& parent = processes_table_.process(*of.process).modules_of) {
      modules_.inherit(*of.process, *parent);
    }
    if (of.thread) {
      processes_table_.change(*of.thread).process = *of.process;
    }
  }
  announcements_.clear();
}

/// Notes the process's first thread as the one that executed the next program, unless a process_end names another.
void RecordDecoder::note_executing(ProcessId process) {
  const auto first = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
    return slot.open && slot.process == process && slot.tid == slot.pid;
  });
  Carried& carried = carried_[process.value];
  if (!carried.thread && first != slots_.end()) {
    carried.thread = first->thread;
  }
}

// Appends the program's name to a message if the recording has several programs. Processes of one program then share
// one message.
std::string RecordDecoder::said_in(const Slot& slot, std::string text) const {
  const std::string program = slot.process ? processes_table_.process(*slot.process).executable : std::string();
  if (program.empty() || program == first_program_) {
    return text;
  }
  return text + " (in " + program.substr(program.rfind('/') + 1) + ")";
}

void RecordDecoder::interpret(std::uint32_t slot, const RecordView& record) {
  if (!announcements_.empty()) {
    heed_announcements();
  }
  if (!dispatch(slots_[slot], record)) {
    ++malformed_;
  }
}

bool RecordDecoder::dispatch(Slot& slot, const RecordView& view) {
  switch (view.type()) {
    case RecordType::padding:
    case RecordType::process_start:  // announce() handles it
      return true;
    case RecordType::process_end:
      take(slot, view.as<profile::ProcessEnd>());
      return true;
    case RecordType::thread_start:
      take(slot, view, view.as<profile::ThreadStart>());
      return true;
    case RecordType::thread_end:
      take(slot, view.as<profile::ThreadEnd>());
      return true;
    case RecordType::module_load:
      return take(slot, view, view.as<profile::ModuleLoad>());
    case RecordType::module_unload:
      take(slot, view.as<profile::ModuleUnload>());
      return true;
    case RecordType::sample:
      return take(slot, view, view.as<profile::Sample>());
    case RecordType::watch_open:
      return take(slot, view.as<profile::WatchOpen>());
    case RecordType::line_probe:
      return take(slot, view.as<profile::LineProbe>());
    case RecordType::watch_trap:
      return take(slot, view, view.as<profile::WatchTrap>());
    case RecordType::watch_close: {
      const auto record = view.as<profile::WatchClose>();
      return possible(record) && (watches_.close(record), true);
    }
    case RecordType::block:
      return take(slot, view.as<profile::Block>());
    case RecordType::message:
      take(slot, view, view.as<profile::Message>());
      return true;
    case RecordType::shared_mapping:
      return take(slot, view, view.as<profile::SharedMapping>());
    case RecordType::lookahead:
      return take(slot, view, view.as<profile::Lookahead>());
    case RecordType::thread_creation:
      return take(slot, view, view.as<profile::ThreadCreation>());
    case RecordType::counter_reading:
      return take(slot, view, view.as<profile::CounterReading>());
  }
  return false;
}

ThreadId RecordDecoder::thread_of(Slot& slot, std::uint64_t time_ns) {
  if (!slot.thread) {
    slot.thread = processes_table_.begin_thread(slot.tid, time_ns);
    settle_process(slot);
  }
  return *slot.thread;
}

ProcessId RecordDecoder::process_of(Slot& slot, std::uint64_t time_ns) {
  if (!slot.process) {
    slot.process = processes_table_.process_at(slot.pid, time_ns);
    settle_process(slot);
  }
  return *slot.process;
}

/// Links the slot's thread to its process, as far as both are known.
void RecordDecoder::settle_process(Slot& slot) {
  if (!slot.thread) {
    return;
  }
  if (!slot.process) {
    slot.process = processes_table_.find_process(slot.pid, processes_table_.thread(*slot.thread).begin_ns);
  }
  if (slot.process) {
    processes_table_.change(*slot.thread).process = *slot.process;
  }
}

StackId RecordDecoder::put_stack(const Registers& registers, std::span<const std::byte> bytes) {
  stack_.id = StackId{++last_stack_};
  stack_.registers = registers;
  const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  stack_.bytes.assign(begin, begin + bytes.size());
  sink_->put(stack_);
  return stack_.id;
}

void RecordDecoder::take(Slot& slot, const RecordView& view, const profile::ThreadStart& record) {
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

void RecordDecoder::take(Slot& slot, const profile::RecordView& view, const profile::Message& record) {
  std::string text = one_line(text_of(view.tail()));
  const std::string code = code_of(record.code);
  if (code == "not_observed" && slot.process) {  // the library in this process reported it
    profile::ProcessRow& row = processes_table_.change(*slot.process);
    row.observation = profile::Observation::none;
    row.unobserved_because = text;
  }
  sink_->put(profile::MessageRow{code, said_in(slot, std::move(text)), 1});
}

void RecordDecoder::take(Slot& slot, const profile::ThreadEnd& record) {
  profile::ThreadRow& row = processes_table_.change(thread_of(slot, record.time_ns));
  row.end_ns = record.time_ns;
  row.name = record.name[0] != '\0' ? one_line(text_of(record.name)) : row.name;
  if (!slot.executed_by) {  // else the slot's totals count it, without the earlier program's share
    row.cpu_ns = std::max(row.cpu_ns, record.cpu_ns);
    row.switches = std::max(row.switches, record.voluntary_switches + record.involuntary_switches);
  }
}

void RecordDecoder::take(Slot& slot, const profile::ProcessEnd& record) {
  const ProcessId process = process_of(slot, record.time_ns);
  if (record.exec == 0) {  // the exec may still fail; otherwise the pid's next process_start ends this process
    processes_table_.change(process).end_ns = record.time_ns;
  } else {
    carried_[process.value].thread = thread_of(slot, record.time_ns);
  }
}

bool RecordDecoder::take(Slot& slot, const RecordView& view, const profile::ModuleLoad& record) {
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
  row.build_id = hex({record.build_id, record.build_id_size});
  row.path = text_of(view.tail());
  row.is_vdso = record.is_vdso != 0;
  if (identify_) {
    identify_(slot.pid, row);
  }
  sink_->put(row);
  modules_.load(std::move(row));
  return true;
}

void RecordDecoder::take(Slot& slot, const profile::ModuleUnload& record) {
  const ProcessId process = process_of(slot, record.time_ns);
  const std::uint64_t process_begin_ns = processes_table_.process(process).begin_ns;
  if (const auto row = modules_.unload(process, record.begin, record.time_ns, process_begin_ns)) {
    sink_->put(*row);
  }
}

bool RecordDecoder::take(Slot& slot, const RecordView& view, const profile::Sample& record) {
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
  row.region = regions_.id_of(static_cast<std::uint32_t>(&slot - slots_.data()), record.region);
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
  if (row.is_of_time() && modules_.in_collector(process_of(slot, record.time_ns), row.ip)) {
    stand_ins_ns_ += row.time_weight_ns();
  }
  if (record.watch != 0) {
    watches_.sample(row);
  }
  return true;
}

bool RecordDecoder::take(Slot& slot, const profile::WatchOpen& record) {
  if (!possible(record)) {
    return false;
  }
  const ThreadId thread = thread_of(slot, record.time_ns);
  ++processes_table_.change(thread).armed;
  watches_.open(thread, record);
  return true;
}

bool RecordDecoder::take(Slot& slot, const profile::LineProbe& record) {
  if (!possible(record)) {
    return false;
  }
  const ThreadId thread = thread_of(slot, record.time_ns);
  ++processes_table_.change(thread).armed;
  watches_.probe(thread, record);
  return true;
}

bool RecordDecoder::take(Slot& slot, const RecordView& view, const profile::WatchTrap& record) {
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

bool RecordDecoder::take(Slot& slot, const profile::Block& record) {
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
  return true;
}

bool RecordDecoder::take(Slot& slot, const RecordView& view, const profile::SharedMapping& record) {
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
  return true;
}

bool RecordDecoder::take(Slot& slot, const RecordView& view, const profile::ThreadCreation& record) {
  const std::span<const std::byte> tail = view.tail();
  if (record.stack.bytes > tail.size()) {
    return false;
  }
  profile::ThreadCreationRow row;
  row.thread = thread_of(slot, record.time_ns);
  row.time_ns = record.time_ns;
  row.stack = put_stack(record.stack.registers, tail.first(static_cast<std::size_t>(record.stack.bytes)));
  sink_->put(row);
  return true;
}

bool RecordDecoder::take(Slot& slot, const RecordView& view, const profile::Lookahead& record) {
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

bool RecordDecoder::take(Slot& slot, const RecordView& view, const profile::CounterReading& record) {
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

void RecordDecoder::carry(const Slot& slot, const SlotTotals& totals) {
  const auto found = slot.process ? carried_.find(slot.process->value) : carried_.end();
  if (found != carried_.end() && found->second.thread == slot.thread) {
    found->second.known = true;
    found->second.cpu_ns = totals.cpu_ns;
    found->second.switches = totals.switches;
  }
}

void RecordDecoder::update_totals(std::uint32_t slot, SlotTotals totals) {
  const Slot& of = slots_[slot];
  if (!of.thread) {
    return;
  }
  carry(of, totals);
  const auto before = of.executed_by ? carried_.find(of.executed_by->value) : carried_.end();
  if (before != carried_.end() && before->second.thread) {
    const Carried& carried = before->second;
    if (!carried.known) {
      return;
    }
    totals.cpu_ns -= std::min(totals.cpu_ns, carried.cpu_ns);
    totals.switches -= std::min(totals.switches, carried.switches);
  }
  processes_table_.update(*of.thread, totals);
}

void RecordDecoder::update_processor_times(std::uint32_t slot, const SchedulerTimes& times) {
  const auto& thread = slots_[slot].thread;
  if (!thread || processes_table_.thread(*thread).ran_ns == times.ran_ns) {
    return;
  }
  profile::ThreadRow& row = processes_table_.change(*thread);
  row.ran_ns = times.ran_ns;
  row.waited_ns = times.waited_ns;
}

void RecordDecoder::update_waits(std::uint32_t slot, std::vector<profile::ThreadWaitRow> rows) {
  Slot& of = slots_[slot];
  if (!of.thread || rows.empty() || of.waits == rows.front().count) {
    return;
  }
  of.waits = rows.front().count;
  for (profile::ThreadWaitRow& row : rows) {
    row.thread = *of.thread;
    sink_->put(row);
  }
}

void RecordDecoder::update_regions(std::uint32_t slot, const RegionsSeen& seen) {
  if (slots_[slot].thread) {
    regions_.put(slot, *slots_[slot].thread, seen);
  }
}

void RecordDecoder::rename(std::uint32_t slot, const std::string& name) {
  const Slot& of = slots_[slot];
  if (of.thread && processes_table_.thread(*of.thread).name != one_line(name)) {
    processes_table_.change(*of.thread).name = one_line(name);
  }
}

std::string RecordDecoder::executable(std::uint32_t slot) const {
  const Slot& of = slots_[slot];
  return of.process ? processes_table_.process(*of.process).executable : std::string();
}

void RecordDecoder::close_slot(std::uint32_t slot, std::uint64_t now_ns) {
  Slot& of = slots_[slot];
  if (of.thread) {
    (void)process_of(of, of.since_ns);
    profile::ThreadRow& row = processes_table_.change(*of.thread);
    row.end_ns = row.end_ns != 0 ? row.end_ns : now_ns;
    processes_table_.close_thread(*of.thread);
  }
  if (of.executed_by) {
    carried_.erase(of.executed_by->value);
  }
  regions_.close(slot);
  of = Slot{};
}

bool RecordDecoder::superseded(std::uint32_t slot) const {
  const Slot& of = slots_[slot];
  return of.open && of.process && processes_table_.latest_process(of.pid) != of.process;
}

void RecordDecoder::end_process(std::int32_t pid, std::uint64_t time_ns) {
  const auto latest = processes_table_.latest_process(pid);
  if (latest && processes_table_.process(*latest).end_ns == 0) {
    processes_table_.end_process(pid, time_ns);
  }
}

void RecordDecoder::set_exit_status(std::int32_t pid, int status, std::uint64_t time_ns) {
  processes_table_.set_exit_status(pid, status, time_ns);
}

void RecordDecoder::flush(std::uint64_t now_ns) {
  for (Slot& slot : slots_) {
    if (slot.open && slot.thread && !slot.process) {
      (void)process_of(slot, slot.since_ns);  // its process_start was lost
    }
  }
  watches_.settle(now_ns > patience_ns ? now_ns - patience_ns : 0);
  processes_table_.flush();
}

void RecordDecoder::put_everything() {
  for (Slot& slot : slots_) {
    slot.waits.reset();
  }
  regions_.put_everything();
  processes_table_.put_everything();
  modules_.put_everything(*sink_);
}

void RecordDecoder::evict(std::uint64_t now_ns) {
  std::unordered_set<std::uint32_t> in_use;
  for (const Slot& slot : slots_) {
    if (slot.open && slot.process) {
      in_use.insert(slot.process->value);
    }
    if (slot.open && slot.executed_by) {
      in_use.insert(slot.executed_by->value);
    }
  }
  for (const ProcessId gone : processes_table_.evict(now_ns > memory_ns ? now_ns - memory_ns : 0, in_use)) {
    modules_.forget(gone);
    carried_.erase(gone.value);
  }
}

void RecordDecoder::finish() {
  watches_.finish();
  for (Slot& slot : slots_) {
    if (slot.open && slot.thread) {
      (void)process_of(slot, slot.since_ns);
    }
  }
  processes_table_.flush();
}

}  // namespace crosstalk::daemon
