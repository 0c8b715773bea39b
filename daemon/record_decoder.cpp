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

}  // namespace

RecordDecoder::RecordDecoder(RowSink& sink, Identify identify)
    : sink_(&sink), identify_(std::move(identify)), processes_table_(sink), watches_(sink), regions_(sink) {}

void RecordDecoder::open_slot(std::uint32_t slot, std::int32_t pid, std::int32_t tid, std::uint64_t now_ns) {
  slots_[slot] = Slot{true, slot, pid, tid, now_ns, std::nullopt, std::nullopt, std::nullopt, false, std::nullopt};
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

void RecordDecoder::handle_announcements() {
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
    const bool continues = announcement.start.after_fork == 0 && announcement.start.own_totals == 0;
    of.executed_by = continues ? processes_table_.latest_process(of.pid) : std::nullopt;
    if (of.executed_by) {
      note_executing(*of.executed_by);
    }
    of.process = processes_table_.begin_process(announcement.start, std::move(announcement.executable),
                                                std::move(announcement.command));
    if (const auto& parent = processes_table_.process(*of.process).modules_of) {
      modules_.inherit(*of.process, *parent, announcement.start.time_ns);
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

void RecordDecoder::decode(std::uint32_t slot, const RecordView& record) {
  if (!announcements_.empty()) {
    handle_announcements();
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
      handle(slot, view.as<profile::ProcessEnd>());
      return true;
    case RecordType::thread_start:
      handle(slot, view, view.as<profile::ThreadStart>());
      return true;
    case RecordType::thread_end:
      handle(slot, view.as<profile::ThreadEnd>());
      return true;
    case RecordType::module_load:
      return handle(slot, view, view.as<profile::ModuleLoad>());
    case RecordType::module_unload:
      handle(slot, view.as<profile::ModuleUnload>());
      return true;
    case RecordType::sample:
      return handle(slot, view, view.as<profile::Sample>());
    case RecordType::watch_open:
      return handle(slot, view.as<profile::WatchOpen>());
    case RecordType::line_probe:
      return handle(slot, view.as<profile::LineProbe>());
    case RecordType::watch_trap:
      return handle(slot, view, view.as<profile::WatchTrap>());
    case RecordType::watch_close: {
      const auto record = view.as<profile::WatchClose>();
      return possible(record) && (watches_.close(record), true);
    }
    case RecordType::block:
      return handle(slot, view.as<profile::Block>());
    case RecordType::message:
      handle(slot, view, view.as<profile::Message>());
      return true;
    case RecordType::shared_mapping:
      return handle(slot, view, view.as<profile::SharedMapping>());
    case RecordType::lookahead:
      return handle(slot, view, view.as<profile::Lookahead>());
    case RecordType::thread_creation:
      return handle(slot, view, view.as<profile::ThreadCreation>());
    case RecordType::counter_reading:
      return handle(slot, view, view.as<profile::CounterReading>());
    case RecordType::sampled_wait:
      return handle(slot, view, view.as<profile::SampledWait>());
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
  regions_.put_everything(*sink_);
  processes_table_.put_everything();
  modules_.put_everything(*sink_);
}

void RecordDecoder::begin_file(RowSink& file) {
  for (Slot& slot : slots_) {
    slot.waits.reset();
  }
  processes_table_.put_living(file);
  for_each_module([&file](const profile::ModuleRow& row) { file.put(row); });
  regions_.put_everything(file);
  told_->put_everything(file, [this](auto id) { return processes_table_.lives(id); });
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
  for (const ProcessId gone :
       processes_table_.evict(now_ns > remember_ended_ns ? now_ns - remember_ended_ns : 0, in_use)) {
    modules_.forget(gone);
    if (told_) {
      told_->forget(gone);
    }
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
