// SPDX-License-Identifier: Apache-2.0
#include "daemon/process_table.h"

#include <algorithm>
#include <utility>

#include "profile/thread_time.h"

namespace crosstalk::daemon {

SlotTotals totals_of(const profile::ThreadSlot& slot) {
  const auto read = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  SlotTotals totals;
  totals.lost = read(slot.lost_records);
  totals.samples = read(slot.samples);
  totals.traps = read(slot.traps);
  totals.handlers_ns = read(slot.handlers_ns);
  totals.switches_ns = read(slot.switches_ns);
  totals.switches = read(slot.switches);
  totals.cpu_ns = read(slot.cpu_ns);
  totals.handler_samples_ns = read(slot.handler_samples_ns);
  const auto clock = static_cast<profile::ClockKind>(slot.clock.load(std::memory_order_relaxed));
  totals.clock = clock <= profile::ClockKind::perf ? clock : profile::ClockKind::automatic;
  totals.period_us = slot.period_us.load(std::memory_order_relaxed);
  return totals;
}

ProcessId ProcessTable::add_process(profile::ProcessRow row) {
  row.id = ProcessId{next_process_++};
  const ProcessId id = row.id;
  by_pid_[row.pid].push_back(id);
  processes_[id.value].row = std::move(row);
  change(id);
  return id;
}

ProcessId ProcessTable::begin_process(const profile::ProcessStart& record, std::string executable,
                                      std::string command) {
  profile::ProcessRow row;
  row.pid = record.pid;
  row.parent_pid = record.parent_pid;
  row.executable = std::move(executable);
  row.command = std::move(command);
  row.begin_ns = record.time_ns;
  row.after_fork = record.after_fork != 0;
  row.observation =
      record.observation <= profile::Observation::none ? record.observation : profile::Observation::unknown;
  if (row.after_fork) {
    row.modules_of = find_process(record.parent_pid, record.time_ns);
  }
  if (const auto older = latest_process(record.pid); older && process(*older).end_ns == 0) {
    change(*older).end_ns = record.time_ns;
  }
  return add_process(std::move(row));
}

void ProcessTable::add_unobserved(profile::ProcessRow row) {
  row.id = ProcessId{next_process_++};
  ++unobserved_;
  row.observation = profile::Observation::none;
  if (const auto before = find_process(row.pid, row.begin_ns); before && row.parent_pid == 0) {
    row.parent_pid = process(*before).parent_pid;
  }
  const ProcessId id = row.id;
  processes_[id.value] = {std::move(row), false, true};
  change(id);
}

std::optional<ProcessId> ProcessTable::find_process(std::int32_t pid, std::uint64_t time_ns) const {
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end()) {
    return std::nullopt;
  }
  const std::vector<ProcessId>& generations = found->second;
  const auto latest = std::find_if(generations.rbegin(), generations.rend(),
                                   [&](const ProcessId id) { return process(id).begin_ns <= time_ns; });
  return latest != generations.rend() ? *latest : generations.front();
}

ProcessId ProcessTable::process_at(std::int32_t pid, std::uint64_t time_ns) {
  if (const auto known = find_process(pid, time_ns)) {
    return *known;
  }
  profile::ProcessRow row;
  row.pid = pid;
  row.begin_ns = time_ns;
  return add_process(std::move(row));
}

std::optional<ProcessId> ProcessTable::latest_process(std::int32_t pid) const {
  const auto found = by_pid_.find(pid);
  return found == by_pid_.end() ? std::nullopt : std::optional<ProcessId>(found->second.back());
}

void ProcessTable::end_process(std::int32_t pid, std::uint64_t time_ns) {
  if (const auto latest = latest_process(pid)) {
    change(*latest).end_ns = time_ns;
  }
}

void ProcessTable::set_exit_status(std::int32_t pid, int status, std::uint64_t time_ns) {
  if (const auto latest = latest_process(pid)) {
    profile::ProcessRow& row = change(*latest);
    row.exit_status = status;
    row.end_ns = row.end_ns != 0 ? row.end_ns : time_ns;
  }
}

ThreadId ProcessTable::begin_thread(std::int32_t tid, std::uint64_t time_ns) {
  const ThreadId id{next_thread_++};
  profile::ThreadRow row;
  row.id = id;
  row.tid = tid;
  row.begin_ns = time_ns;
  threads_[id.value].row = std::move(row);
  change(id);
  return id;
}

void ProcessTable::close_thread(ThreadId id) { threads_.at(id.value).closed = true; }

profile::ProcessRow& ProcessTable::change(ProcessId id) {
  Entry<profile::ProcessRow>& entry = processes_.at(id.value);
  if (!entry.changed) {
    entry.changed = true;
    changed_processes_.push_back(id.value);
  }
  return entry.row;
}

profile::ThreadRow& ProcessTable::change(ThreadId id) {
  Entry<profile::ThreadRow>& entry = threads_.at(id.value);
  if (!entry.changed) {
    entry.changed = true;
    changed_threads_.push_back(id.value);
  }
  return entry.row;
}

void ProcessTable::update(ThreadId id, const SlotTotals& totals) {
  const profile::ThreadRow& old = thread(id);
  // A thread that did not run has used nothing, so its row stays.
  if (totals.cpu_ns == old.cpu_ns && totals.handlers_ns == old.handlers_ns && totals.samples == old.samples &&
      totals.traps == old.traps && totals.lost == old.lost && totals.switches == old.switches &&
      totals.clock == old.clock && totals.period_us == old.period_us) {
    return;
  }
  profile::ThreadRow& row = change(id);
  row.cpu_ns = std::max(row.cpu_ns, totals.cpu_ns);  // its ThreadEnd may have a later figure
  row.samples = totals.samples;
  row.traps = totals.traps;
  row.lost = totals.lost;
  row.handlers_ns = totals.handlers_ns;
  row.switches_ns = totals.switches_ns;
  row.switches = std::max(row.switches, totals.switches);
  row.handler_samples_ns = totals.handler_samples_ns;
  row.clock = totals.clock;
  row.period_us = totals.period_us;
}

std::uint64_t ProcessTable::cpu_time_ns(const profile::ThreadRow& row) const {
  const auto sampled = sampled_ns_.find(row.id.value);
  return profile::cpu_time_ns(row, sampled == sampled_ns_.end() ? 0 : sampled->second);
}

ProcessTable::Spent ProcessTable::spent() const {
  Spent sum = evicted_;
  for (const auto& [id, entry] : threads_) {
    sum.observing_ns += entry.row.handlers_ns + entry.row.switches_ns;
    sum.cpu_ns += cpu_time_ns(entry.row);
  }
  return sum;
}

void ProcessTable::flush() {
  for (const std::uint32_t index : changed_processes_) {
    Entry<profile::ProcessRow>& entry = processes_.at(index);
    entry.changed = false;
    sink_->put(entry.row);
  }
  changed_processes_.clear();
  for (const std::uint32_t index : changed_threads_) {
    Entry<profile::ThreadRow>& entry = threads_.at(index);
    entry.changed = false;
    sink_->put(entry.row);
  }
  changed_threads_.clear();
}

void ProcessTable::put_everything() {
  flush();
  for (const auto& [id, entry] : processes_) {
    sink_->put(entry.row);
  }
  for (const auto& [id, entry] : threads_) {
    sink_->put(entry.row);
  }
}

template <class Id, class Entries>
std::vector<Id> ProcessTable::living_in(const Entries& entries) {
  std::vector<Id> ids;
  for (const auto& [id, entry] : entries) {
    if (lives(&entry.row)) {
      ids.push_back(Id{id});
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<ProcessId> ProcessTable::living() const { return living_in<ProcessId>(processes_); }

void ProcessTable::put_living(RowSink& sink) const {
  for (const ProcessId id : living()) {
    sink.put(process(id));
  }
  for (const ThreadId id : living_in<ThreadId>(threads_)) {
    sink.put(thread(id));
  }
}

std::vector<ProcessId> ProcessTable::evict(std::uint64_t before_ns, const std::unordered_set<std::uint32_t>& in_use) {
  std::unordered_set<std::uint32_t> needed = in_use;
  std::erase_if(threads_, [&](const auto& known) {
    const auto& [row, changed, closed] = known.second;
    if (changed || !closed) {
      needed.insert(row.process.value);
      return false;
    }
    evicted_.observing_ns += row.handlers_ns + row.switches_ns;
    evicted_.cpu_ns += cpu_time_ns(row);
    sampled_ns_.erase(row.id.value);
    return true;
  });
  std::vector<ProcessId> gone;
  for (const auto& [id, entry] : processes_) {
    const std::uint64_t end_ns = entry.row.end_ns;
    const bool over = entry.closed || (end_ns != 0 && end_ns < before_ns);
    if (!entry.changed && over && !needed.contains(id)) {
      gone.push_back(ProcessId{id});
    }
  }
  for (const ProcessId id : gone) {
    const auto generations = by_pid_.find(process(id).pid);
    if (generations != by_pid_.end() && std::erase(generations->second, id) != 0 && generations->second.empty()) {
      by_pid_.erase(generations);
    }
    processes_.erase(id.value);
  }
  return gone;
}

}  // namespace crosstalk::daemon
