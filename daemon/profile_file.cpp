// SPDX-License-Identifier: Apache-2.0
#include "daemon/profile_file.h"

#include <algorithm>
#include <utility>

#include "daemon/told_once.h"

namespace crosstalk::daemon {
namespace {

/// True if `number` is `other` or was given out before it: numbers go around after 2^32.
bool is_up_to(std::uint32_t number, std::uint32_t other) { return static_cast<std::int32_t>(number - other) <= 0; }

/// Returns the row as it was at `end_ns`.
template <class Row>
Row before_end(Row row, std::uint64_t end_ns) {
  row.end_ns = row.end_ns > end_ns ? 0 : row.end_ns;
  return row;
}

profile::ThreadRow without_totals(profile::ThreadRow row) {
  row.cpu_ns = row.ran_ns = row.waited_ns = 0;
  row.samples = row.traps = row.armed = row.lost = 0;
  row.handlers_ns = row.switches_ns = row.switches = row.handler_samples_ns = 0;
  return row;
}

}  // namespace

ProfileFile::ProfileFile(Result<profile::ProfileWriter> writer, std::function<void(const std::string&)> warn,
                         const ProcessTable& processes, Boundary begin)
    : sink_(std::move(writer), std::move(warn)), known_(&processes), begin_(begin), now_ns_(begin.time_ns) {}

void ProfileFile::put(const profile::ProcessRow& row) {
  profile::ProcessRow told = ended_ ? before_end(row, now_ns_) : row;
  told.id = processes_.put(row.id);
  // A process whose parent ended before the file has all of its modules itself (ModuleTable::present()).
  const bool inherits = row.modules_of && was_there(*row.modules_of);
  told.modules_of = inherits ? std::optional(processes_.of(*row.modules_of)) : std::nullopt;
  sink_.put(told);
}

void ProfileFile::put(const profile::ThreadRow& row) {
  const profile::ThreadRow then = ended_ ? before_end(row, now_ns_) : row;
  const bool goes_on = ended_ && then.end_ns == 0;  // the next file has its totals
  profile::ThreadRow told = goes_on ? without_totals(then) : totals_.of(then, begin_.time_ns, now_ns_);
  told.id = threads_.put(row.id);
  told.process = processes_.of(row.process);
  sums_are_old_ = true;
  sink_.put(told);
}

void ProfileFile::put(const profile::ModuleRow& row) {
  profile::ModuleRow told = row;
  told.process = processes_.of(row.process);
  sink_.put(told);
}

template <class Row>
void ProfileFile::put_of_thread(const Row& row) {
  Row told = row;
  told.thread = threads_.of(row.thread);
  told.time_ns = clamped(row.time_ns);
  if constexpr (requires { told.stack; }) {
    told.stack = stack_in_file(row.stack);
  }
  sink_.put(told);
}

/// A sample stands for the thread's time since its previous one, but not for the time before the file: a recording that
/// had begun at that moment would not have it either.
std::uint64_t ProfileFile::clipped(std::uint64_t weight_ns, std::uint64_t time_ns) const {
  return begin_.first ? weight_ns : std::min(weight_ns, clamped(time_ns) - begin_.time_ns);
}

void ProfileFile::put(const profile::SampleRow& row) {
  if (row.measurement.source != profile::SourceKind::clock || row.cpu_ns == clipped(row.cpu_ns, row.time_ns)) {
    put_of_thread(row);
    return;
  }
  profile::SampleRow part = row;
  part.cpu_ns = clipped(row.cpu_ns, row.time_ns);
  put_of_thread(part);
}

void ProfileFile::put(const profile::WatchRow& row) {
  profile::WatchRow told = row;
  told.thread = threads_.of(row.thread);
  told.time_ns = clamped(row.time_ns);
  told.sample_cpu_ns = clipped(row.sample_cpu_ns, row.time_ns);
  told.sample_stack = stack_in_file(row.sample_stack);
  sink_.put(told);
}

void ProfileFile::put(const profile::TrapRow& row) { put_of_thread(row); }
void ProfileFile::put(const profile::ThreadCreationRow& row) { put_of_thread(row); }
void ProfileFile::put(const profile::SampledWaitRow& row) { put_of_thread(row); }
void ProfileFile::put(const profile::LookaheadRow& row) { put_of_thread(row); }
// Counts go on from reading to reading, so they are told as they are: a report takes differences within a file.
void ProfileFile::put(const profile::ReadingRow& row) { put_of_thread(row); }

void ProfileFile::put(const profile::BlockRow& row) {
  profile::BlockRow told = row;
  told.process = processes_.of(row.process);
  told.time_ns = clamped(row.time_ns);
  told.stack = stack_in_file(row.stack);
  sink_.put(told);
}

void ProfileFile::put(const profile::SharedMappingRow& row) {
  profile::SharedMappingRow told = row;
  told.process = processes_.of(row.process);
  told.time_ns = clamped(row.time_ns);
  sink_.put(told);
}

/// A wait that began in an earlier file has no count here, as that file has counted it.
void ProfileFile::put(const profile::ThreadWaitRow& row) {
  profile::ThreadWaitRow told = totals_.of(row, now_ns_ - begin_.time_ns);
  if (row.kind != profile::WaitKind::all && told.count == 0 && told.waited_ns == 0) {
    return;
  }
  told.thread = threads_.of(row.thread);
  sink_.put(told);
}

void ProfileFile::put(const profile::ThreadRegionRow& row) {
  profile::ThreadRegionRow told = totals_.of(row, now_ns_ - begin_.time_ns);
  if (told.entries == 0 && told.elapsed_ns == 0) {
    return;
  }
  told.thread = threads_.of(row.thread);
  sink_.put(told);
}

/// Stacks that were taken in the file's interval have the recording's numbers, counted from the file's begin. The few
/// that are put once more get the first numbers.
void ProfileFile::put(const profile::StackRow& row) {
  if (is_up_to(row.id.value, begin_.stack.value)) {
    stacks_before_.try_emplace(row.id.value, static_cast<std::uint32_t>(stacks_before_.size() + 1));
  }
  profile::StackRow told = row;
  told.id = stack_in_file(row.id);
  sink_.put(told);
}

StackId ProfileFile::stack_in_file(StackId id) const {
  if (id.value == 0 || !is_up_to(id.value, begin_.stack.value)) {
    const auto first = static_cast<std::uint32_t>(ToldOnce::most_creations);
    return id.value == 0 ? id : StackId{id.value - begin_.stack.value + first};
  }
  const auto known = stacks_before_.find(id.value);
  return known != stacks_before_.end() ? StackId{known->second} : StackId{};
}

void ProfileFile::put(const profile::Session& session) {
  profile::Session told = totals_.of(session);
  told.begin_ns = begin_.time_ns;
  told.end_ns = now_ns_;
  session_ = session;
  sums_are_old_ = false;
  sink_.put(told);
}

IntervalTotals ProfileFile::end() {
  ended_ = true;
  return totals_.next([this](ThreadId thread) { return known_->find(thread) != nullptr; });
}

/// True if the process was there in the file's interval.
bool ProfileFile::was_there(ProcessId id) const {
  const profile::ProcessRow* const row = known_->find(id);
  return has(id) || (row != nullptr && (row->end_ns == 0 || !begin_.is_after(row->end_ns)));
}

/// Puts the rows of threads and processes that rows of this file refer to.
void ProfileFile::put_owed() {
  for (const ThreadId id : std::vector(threads_.owed())) {
    profile::ThreadRow unknown;
    unknown.id = id;
    const profile::ThreadRow* const row = known_->find(id);
    put(row != nullptr ? *row : unknown);
  }
  for (const ProcessId id : std::vector(processes_.owed())) {
    profile::ProcessRow unknown;
    unknown.id = id;
    const profile::ProcessRow* const row = known_->find(id);
    put(row != nullptr ? *row : unknown);
  }
}

void ProfileFile::commit() {
  put_owed();
  if (sums_are_old_ && session_) {
    put(profile::Session(*session_));
  }
  sink_.commit();
}

}  // namespace crosstalk::daemon
