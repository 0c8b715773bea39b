// SPDX-License-Identifier: Apache-2.0
#include "daemon/process_table.h"

#include <algorithm>
#include <utility>

namespace crosstalk::daemon {

SlotTotals totals_of(const profile::ThreadSlot& slot) {
  const auto read = [](const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); };
  SlotTotals totals;
  totals.lost = read(slot.lost_records);
  totals.samples = read(slot.samples);
  totals.traps = read(slot.traps);
  totals.armed = read(slot.armed);
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
  row.id = ProcessId{static_cast<std::uint32_t>(processes_.size())};
  const ProcessId id = row.id;
  by_pid_[row.pid].push_back(id);
  processes_.push_back(std::move(row));
  process_changed_.push_back(false);
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
  if (row.after_fork) {
    row.modules_of = find_process(record.parent_pid, record.time_ns);
  }
  if (const auto older = latest_process(record.pid); older && processes_[older->value].end_ns == 0) {
    change(*older).end_ns = record.time_ns;
  }
  return add_process(std::move(row));
}

std::optional<ProcessId> ProcessTable::find_process(std::int32_t pid, std::uint64_t time_ns) const {
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end()) {
    return std::nullopt;
  }
  const std::vector<ProcessId>& generations = found->second;
  const auto latest = std::find_if(generations.rbegin(), generations.rend(),
                                   [&](const ProcessId id) { return processes_[id.value].begin_ns <= time_ns; });
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
  const ThreadId id{static_cast<std::uint32_t>(threads_.size())};
  profile::ThreadRow row;
  row.id = id;
  row.tid = tid;
  row.begin_ns = time_ns;
  threads_.push_back(std::move(row));
  thread_changed_.push_back(false);
  change(id);
  return id;
}

profile::ProcessRow& ProcessTable::change(ProcessId id) {
  if (!process_changed_[id.value]) {
    process_changed_[id.value] = true;
    changed_processes_.push_back(id.value);
  }
  return processes_[id.value];
}

profile::ThreadRow& ProcessTable::change(ThreadId id) {
  if (!thread_changed_[id.value]) {
    thread_changed_[id.value] = true;
    changed_threads_.push_back(id.value);
  }
  return threads_[id.value];
}

void ProcessTable::update(ThreadId id, const SlotTotals& totals) {
  const profile::ThreadRow& old = threads_[id.value];
  // A thread that did not run since has spent nothing, and its row stays as it is.
  if (totals.cpu_ns == old.cpu_ns && totals.handlers_ns == old.handlers_ns && totals.samples == old.samples &&
      totals.traps == old.traps && totals.lost == old.lost && totals.switches == old.switches &&
      totals.clock == old.clock && totals.period_us == old.period_us) {
    return;
  }
  profile::ThreadRow& row = change(id);
  row.cpu_ns = std::max(row.cpu_ns, totals.cpu_ns);  // its ThreadEnd may have said more
  row.samples = totals.samples;
  row.traps = totals.traps;
  row.armed = totals.armed;
  row.lost = totals.lost;
  row.handlers_ns = totals.handlers_ns;
  row.switches_ns = totals.switches_ns;
  row.switches = std::max(row.switches, totals.switches);
  row.handler_samples_ns = totals.handler_samples_ns;
  row.clock = totals.clock;
  row.period_us = totals.period_us;
}

void ProcessTable::flush() {
  for (const std::uint32_t index : changed_processes_) {
    process_changed_[index] = false;
    sink_->put(processes_[index]);
  }
  changed_processes_.clear();
  for (const std::uint32_t index : changed_threads_) {
    thread_changed_[index] = false;
    sink_->put(threads_[index]);
  }
  changed_threads_.clear();
}

void ProcessTable::put_everything() {
  flush();
  for (const profile::ProcessRow& row : processes_) {
    sink_->put(row);
  }
  for (const profile::ThreadRow& row : threads_) {
    sink_->put(row);
  }
}

}  // namespace crosstalk::daemon
