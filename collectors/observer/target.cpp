// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "collectors/watch_policy/thread_clock.h"
#include "profile/records.h"

namespace crosstalk::observer {
namespace {

constexpr int most_looks = 8;                          // for threads that threads make while we look
constexpr std::uint64_t largest_stack = 64ULL << 20U;  // of what is larger, most is something else

void copy_name(const std::string& name, char (&to)[16]) {
  std::memcpy(to, name.data(), std::min(name.size(), sizeof to - 1));
}

bool same_module(const TargetModule& a, const TargetModule& b) {
  return a.record.begin == b.record.begin && a.record.end == b.record.end && a.path == b.path;
}

bool has(const std::vector<TargetModule>& modules, const TargetModule& wanted) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const TargetModule& module) { return same_module(module, wanted); });
}

}  // namespace

Target::Target(pid_t pid, ArenaAccess arena)
    : pid_(pid), arena_(std::move(arena)), memory_(pid), period_ns_(arena_.header().config.period_ns) {}

Result<void> Target::begin() {
  with_kernel_ = kernel_allowed(pid_);
  maps_ = maps_of(pid_);
  Result<void> first;
  for (const pid_t tid : threads_of(pid_)) {
    if (Result<void> met = meet(tid); !met && first) {
      first = std::move(met);
    }
  }
  if (threads_.empty()) {
    return first ? fail(ErrorCode::refused, "-p " + std::to_string(pid_) + ": it has ended") : first;
  }
  meet_all();
  return {};
}

bool Target::watched(pid_t tid) const {
  return std::any_of(threads_.begin(), threads_.end(), [tid](const auto& thread) { return thread->tid == tid; });
}

void Target::meet_all() {
  for (int look = 0; look < most_looks; ++look) {
    bool any = false;
    for (const pid_t tid : threads_of(pid_)) {
      any = (!watched(tid) && meet(tid) && watched(tid)) || any;
    }
    if (!any) {
      return;
    }
  }
}

Result<Target::Events> Target::open_events(pid_t tid, std::uint64_t& random) const {
  Result<OpenEvent> clock = open_clock(tid, {watch_policy::first_expiry(period_ns_, random), with_kernel_});
  if (!clock) {
    return tl::unexpected<Error>(clock.error());
  }
  Result<PerfRing> ring = map_ring(*clock);
  if (!ring) {
    return fail(ErrorCode::permission,
                ring.error().message + "; more locked memory helps: kernel.perf_event_mlock_kb, ulimit -l");
  }
  return Events{std::move(*clock), std::move(*ring)};
}

void Target::rest(WatchedThread& thread) {
  thread.cpu_before_ns += read_clock(thread.clock);
  thread.events.reset();
  thread.clock = {};
}

bool Target::rouse(WatchedThread& thread) {
  Result<Events> events = open_events(thread.tid, thread.random);
  if (!events) {
    return false;
  }
  thread.clock = std::move(events->clock);
  thread.events.emplace(std::move(events->ring));
  thread.fresh = true;
  thread.cpu_ns = thread.cpu_before_ns;
  enable_clock(thread.clock);
  return true;
}

Result<std::unique_ptr<WatchedThread>> Target::make_thread(pid_t tid) {
  const profile::SessionConfig& config = arena().config;
  std::uint64_t random = random_state(config.seed != 0 ? config.seed : monotonic_ns(), ++begun_);
  Result<Events> events = open_events(tid, random);
  if (!events) {
    return tl::unexpected<Error>(events.error());
  }
  const std::optional<ThreadFacts> facts = thread_facts(pid_, tid);
  std::unique_ptr<ArenaRing> records = facts ? arena_.claim(pid_, tid) : nullptr;
  if (!records) {
    return is_there(pid_, tid)
               ? fail(ErrorCode::system, "there are too many threads, or too few descriptors (ulimit -n)")
               : fail(ErrorCode::not_found, "thread " + std::to_string(tid) + " is gone");
  }
  auto thread =
      std::make_unique<WatchedThread>(tid, std::move(records), std::move(events->clock), std::move(events->ring));
  thread->random = random;
  thread->begin_ns = monotonic_ns();
  thread->switches_before = facts->switches;
  thread->life_before_ns = facts->cpu_ns;
  const auto stack =
      std::find_if(maps_.begin(), maps_.end(), [](const Mapping& mapping) { return mapping.path == "[stack]"; });
  if (tid == pid_ && stack != maps_.end()) {
    thread->stack_low = stack->begin;
    thread->stack_high = stack->end;
  }
  write_start(*thread, facts->name);
  return thread;
}

Result<void> Target::meet(pid_t tid) {
  if (watched(tid)) {
    return {};
  }
  Result<std::unique_ptr<WatchedThread>> thread = make_thread(tid);
  if (!thread) {
    if (thread.error().code == ErrorCode::not_found) {
      ++missed_;
    } else {
      refused_.insert(tid);
      refusal_ = thread.error().message;
    }
    return tl::unexpected<Error>(thread.error());
  }
  (*thread)->records->go_live();
  if (!std::exchange(announced_, true)) {
    write_process(**thread);
  }
  enable_clock((*thread)->clock);
  threads_.push_back(std::move(*thread));
  return {};
}

void Target::write_start(WatchedThread& thread, const std::string& name) const {
  profile::ThreadSlot& slot = thread.records->slot();
  slot.clock.store(static_cast<std::uint32_t>(profile::ClockKind::perf), std::memory_order_relaxed);
  slot.period_us.store(static_cast<std::uint32_t>(period_ns_ / 1000), std::memory_order_relaxed);
  profile::ThreadStart record;
  record.header.type = profile::RecordType::thread_start;
  record.time_ns = thread.begin_ns;
  record.pid = pid_;
  record.tid = thread.tid;
  record.stack_low = thread.stack_low;
  record.stack_high = thread.stack_high;
  copy_name(name, record.name);
  thread.records->write(record);
}

void Target::write_process(WatchedThread& thread) const {
  const ProcessFacts facts = process_facts(pid_);
  profile::ProcessStart record;
  record.header.type = profile::RecordType::process_start;
  record.time_ns = thread.begin_ns;
  record.pid = pid_;
  record.parent_pid = facts.parent;
  std::string text = facts.executable + '\0';
  for (const std::string& argument : facts.arguments) {
    text += argument + '\0';
  }
  constexpr std::size_t longest = std::size_t{16} << 10U;
  thread.records->write(record, text.data(), std::min(text.size(), longest));
}

void Target::read_maps() {
  if (threads_.empty()) {
    return;
  }
  std::vector<Mapping> maps = maps_of(pid_);
  if (maps.empty()) {
    return;  // it is gone
  }
  maps_ = std::move(maps);
  std::vector<TargetModule> modules = modules_of(maps_, memory_);
  ArenaRing& records = *threads_.front()->records;
  const std::uint64_t now_ns = monotonic_ns();
  for (const TargetModule& module : modules_) {
    if (!has(modules, module)) {
      profile::ModuleUnload record;
      record.header.type = profile::RecordType::module_unload;
      record.time_ns = now_ns;
      record.begin = module.record.begin;
      record.end = module.record.end;
      records.write(record);
    }
  }
  for (TargetModule& module : modules) {
    if (!has(modules_, module)) {
      module.record.time_ns = now_ns;
      records.write(module.record, module.path.data(), module.path.size());
    }
  }
  modules_ = std::move(modules);
}

void Target::learn_stack(WatchedThread& thread, std::uint64_t stack_pointer) const {
  const Mapping* mapping = mapping_at(maps_, stack_pointer);
  if (thread.stack_high != 0 || mapping == nullptr || !mapping->writable ||
      mapping->end - mapping->begin > largest_stack) {
    return;
  }
  thread.stack_low = mapping->begin;
  thread.stack_high = mapping->end;
  const std::optional<ThreadFacts> facts = thread_facts(pid_, thread.tid);
  write_start(thread, facts ? facts->name : std::string());
}

void Target::part(const WatchedThread& gone, bool exited) {
  const auto found =
      std::find_if(threads_.begin(), threads_.end(), [&](const auto& thread) { return thread.get() == &gone; });
  if (found == threads_.end()) {
    return;
  }
  WatchedThread& thread = **found;
  const std::uint64_t now_ns = monotonic_ns();
  if (threads_.size() == 1 && (exited || has_ended(pid_))) {
    profile::ProcessEnd record;
    record.header.type = profile::RecordType::process_end;
    record.time_ns = now_ns;
    record.pid = pid_;
    thread.records->write(record);
  }
  profile::ThreadEnd record;
  record.header.type = profile::RecordType::thread_end;
  record.time_ns = now_ns;
  record.cpu_ns = std::max(thread.cpu_before_ns + read_clock(thread.clock),
                           thread.records->slot().cpu_ns.load(std::memory_order_relaxed));
  record.voluntary_switches = thread.records->slot().switches.load(std::memory_order_relaxed);
  thread.records->slot().cpu_ns.store(record.cpu_ns, std::memory_order_relaxed);
  thread.records->write(record);
  thread.records->end();
  threads_.erase(found);
}

void Target::part_all() {
  while (!threads_.empty()) {
    part(*threads_.back(), false);
  }
}

void Target::begin_anew() {
  part_all();
  announced_ = false;
  modules_.clear();
  maps_ = maps_of(pid_);
  meet_all();
  read_maps();
}

void Target::set_period(std::uint64_t period_ns) {
  period_ns_ = period_ns;
  for (const auto& thread : threads_) {
    if (!thread->fresh && !thread->rests()) {  // else it has the new period once it has ticked
      set_clock_period(thread->clock, period_ns);
    }
    thread->records->slot().period_us.store(static_cast<std::uint32_t>(period_ns / 1000), std::memory_order_relaxed);
  }
}

void Target::message(const char* code, const std::string& text) {
  if (threads_.empty()) {
    return;
  }
  profile::Message record;
  record.header.type = profile::RecordType::message;
  record.time_ns = monotonic_ns();
  std::memcpy(record.code, code, std::min(std::strlen(code), sizeof record.code - 1));
  threads_.front()->records->write(record, text.data(), text.size());
}

}  // namespace crosstalk::observer
