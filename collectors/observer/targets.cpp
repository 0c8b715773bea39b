// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/targets.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "collectors/observer/identity.h"

namespace crosstalk::observer {
namespace {

constexpr int most_looks_for_children = 8;  // for processes that processes start while we look
constexpr std::size_t most_named = 1000;

void add_to(CpuTimes& sum, const CpuTimes& times) {
  sum.observed_ns += times.observed_ns;
  sum.unobserved_ns += times.unobserved_ns;
}

}  // namespace

Targets::Targets(ArenaAccess arena, const Selection& selection, const MemoryEvents& memory)
    : arena_(std::move(arena)),
      selection_(selection),
      memory_(memory),
      period_ns_(arena_.header().config.period_ns),
      shared_board_(make_zeroed<watch_policy::Board>()) {
  shared_board_->start(arena_.header().config.board_slots);
}

Result<void> Targets::begin(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    if (Result<void> added = add(pid, 0); !added) {
      return fail(added.error().code == ErrorCode::not_found ? ErrorCode::refused : added.error().code,
                  "process " + std::to_string(pid) + ": " + added.error().message);
    }
  }
  for (int look = 0; look < most_looks_for_children && selection_.children && meet_children(); ++look) {
  }
  recording_ = true;
  return {};
}

Result<void> Targets::check(pid_t pid) const {
  if (is_librarys(pid)) {
    return fail(ErrorCode::refused, "the library in it observes it");
  }
  return selection_.owner ? check_owner(pid, *selection_.owner) : Result<void>();
}

/// Checks the owner before anything of the process is read, and once more when its events are open: from then on, an
/// exec is reported.
Result<void> Targets::add(pid_t pid, pid_t parent) {
  if (Result<void> owned = check(pid); !owned) {
    return owned;
  }
  auto target = std::make_unique<Target>(TargetIdentity{pid, parent, begun_++, recording_, selection_.beside_library},
                                         arena_, period_ns_, memory_);
  Result<void> begun = target->begin();
  if (begun) {
    begun = check(pid);
  }
  if (!begun) {
    target->part_all();
    return begun;
  }
  processes_.push_back(std::move(target));
  return {};
}

/// It may be known: as a child, or as one that was left and executes another program now.
Result<void> Targets::take(pid_t pid) {
  retire();
  return process_of(pid) != nullptr ? Result<void>() : add(pid, 0);
}

void Targets::add_child(pid_t pid, pid_t parent) {
  if (passed_over_.contains(pid)) {
    return;
  }
  const Result<void> added = add(pid, parent);
  if (added) {
    return;
  }
  if (added.error().code == ErrorCode::not_found) {
    passed_over_.insert(pid);
    ++retired_.brief_processes;
  } else {
    pass_over(pid, parent, added.error().message);
  }
}

/// Notes a process that is there and not watched.
void Targets::pass_over(pid_t pid, pid_t parent, const std::string& why) {
  passed_over_.insert(pid);
  if (is_librarys(pid)) {
    return;
  }
  ++retired_.refused_processes;
  retired_.process_refusal = why;
  if (refused_.size() < most_named) {
    refused_.push_back({pid, parent, monotonic_ns(), process_facts(pid), why});
  }
}

bool Targets::is_stranger(const Target& process) const {
  const Result<void> owned = check(process.pid());
  return !owned && owned.error().code != ErrorCode::not_found;
}

bool Targets::may_be_others(const Target& process) const {
  const auto rests = [](const auto& thread) { return thread->rests(); };
  return selection_.owner && std::any_of(process.threads().begin(), process.threads().end(), rests) &&
         !check_owner(process.pid(), *selection_.owner);
}

bool Targets::leave_if_stranger(Target& process) {
  const Result<void> owned = check(process.pid());
  if (owned || owned.error().code == ErrorCode::not_found) {
    return false;
  }
  process.leave();
  pass_over(process.pid(), process_facts(process.pid()).parent, owned.error().message);
  return true;
}

/// Returns true if there were any.
bool Targets::meet_children() {
  std::set<pid_t> known;
  for (const auto& process : processes_) {
    known.insert(process->pid());
  }
  bool any = false;
  for (const ChildProcess& child : children_of(known)) {
    if (!known.contains(child.pid) && !passed_over_.contains(child.pid)) {
      add_child(child.pid, child.parent);
      any = true;
    }
  }
  return any;
}

void Targets::meet(pid_t pid, pid_t tid, pid_t parent) {
  if (Target* const process = process_of(pid)) {
    (void)process->meet(tid);  // it may be gone by now, which is counted
  } else if (selection_.children && process_of(parent) != nullptr) {
    add_child(pid, parent);
  }
}

void Targets::meet_all() {
  for (const auto& process : processes_) {
    process->meet_all();
  }
  if (selection_.children) {
    (void)meet_children();
  }
}

void Targets::retire() {
  std::erase_if(processes_, [this](const std::unique_ptr<Target>& process) {
    const bool over = process->threads().empty() && (process->is_left() || process->has_ended());
    if (over) {
      add_to(retired_, *process);
      observer::add_to(retired_times_, process->cpu_times());
    }
    return over;
  });
}

void Targets::part_all() {
  for (const auto& process : processes_) {
    process->part_all();
  }
}

Target* Targets::process_of(pid_t pid) const {
  const auto found =
      std::find_if(processes_.begin(), processes_.end(), [pid](const auto& process) { return process->pid() == pid; });
  return found == processes_.end() ? nullptr : found->get();
}

WatchedThread* Targets::thread_of(pid_t tid) const {
  for (const auto& process : processes_) {
    for (const auto& thread : process->threads()) {
      if (thread->tid == tid) {
        return thread.get();
      }
    }
  }
  return nullptr;
}

std::size_t Targets::thread_count() const {
  std::size_t count = 0;
  for (const auto& process : processes_) {
    count += process->threads().size();
  }
  return count;
}

watch_policy::SharedLine Targets::touch(WatchedThread& thread, std::uint64_t address, std::uint64_t time_ns) {
  watch_policy::SharedLine line = thread.process->touch(thread, address, time_ns);
  line.others = line.known && std::any_of(processes_.begin(), processes_.end(), [&](const auto& process) {
                  return process.get() != thread.process && process->has_touched(line);
                });
  return line;
}

std::vector<LinePlace> Targets::others_at(const WatchedThread& self, std::uint64_t line,
                                          const watch_policy::SharedLine& shared) const {
  std::vector<LinePlace> places;
  for (const auto& process : processes_) {
    const bool same = process.get() == self.process;
    const bool shares = !same && shared.known && process->has_touched(shared);
    const std::uint64_t there = same ? line : shares ? address_of(process->maps(), shared) : 0;
    for (const auto& thread : process->threads()) {
      if (there != 0 && thread.get() != &self) {
        places.push_back({thread.get(), there});
      }
    }
  }
  return places;
}

watch_policy::Board& Targets::board_of(const WatchedThread& thread, const watch_policy::SharedLine& shared) {
  return shared.known ? *shared_board_ : thread.process->board();
}

void Targets::set_period(std::uint64_t period_ns) {
  period_ns_ = period_ns;
  for (const auto& process : processes_) {
    process->set_period(period_ns);
  }
}

void Targets::add_to(Unwatched& sum, const Target& target) {
  sum.brief_threads += target.missed();
  sum.refused_threads += target.refused();
  if (target.refused() != 0) {
    sum.thread_refusal = target.refusal();
  }
  sum.unmeasured_threads += target.unmeasured();
  if (target.unmeasured() != 0) {
    sum.why_unmeasured = target.why_unmeasured();
  }
  if (!target.tracing().tracer().empty()) {
    ++sum.traced_processes;
    sum.tracer = target.tracing().tracer();
  }
}

CpuTimes Targets::cpu_times() const {
  CpuTimes sum = retired_times_;
  for (const auto& process : processes_) {
    observer::add_to(sum, process->cpu_times());
  }
  return sum;
}

void Targets::forget_told() {
  retired_ = {};
  for (const auto& process : processes_) {
    process->forget_missed();
  }
}

Unwatched Targets::unwatched() const {
  Unwatched sum = retired_;
  for (const auto& process : processes_) {
    add_to(sum, *process);
  }
  return sum;
}

}  // namespace crosstalk::observer
