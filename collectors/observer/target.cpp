// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/target.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "collectors/watch_policy/thread_clock.h"
#include "profile/records.h"

namespace crosstalk::observer {
namespace {

constexpr int most_looks = 8;  // for threads that threads make while we look
constexpr std::uint32_t ring_page_bytes = 4096;
constexpr std::size_t pages_of_rings = 4096;  // of a process: locked memory, which thousands of threads share

constexpr std::uint64_t largest_stack = 64ULL << 20U;  // of a larger mapping most is something else

void copy_name(const std::string& name, char (&to)[16]) {
  std::memcpy(to, name.data(), std::min(name.size(), sizeof to - 1));
}

/// The kernel reports an exec some 100 us before the new program's command line is there.
ProcessFacts settled_facts(pid_t pid) {
  constexpr int most_looks_at_it = 50;
  constexpr timespec pause{0, 100'000};
  ProcessFacts facts = process_facts(pid);
  for (int look = 0; look < most_looks_at_it && facts.arguments.empty() && !facts.executable.empty(); ++look) {
    ::nanosleep(&pause, nullptr);
    facts = process_facts(pid);
  }
  return facts;
}

/// Returns the pages of one more thread's ring.
std::uint32_t ring_pages(std::size_t threads) {
  std::uint32_t pages = usual_ring_pages;
  while (pages > least_ring_pages && pages * threads > pages_of_rings) {
    pages /= 2;
  }
  return pages;
}

bool same_module(const TargetModule& a, const TargetModule& b) {
  return a.record.begin == b.record.begin && a.record.end == b.record.end && a.path == b.path &&
         a.record.file_offset == b.record.file_offset;
}

/// True if both are the same part of the same file, at the same address.
bool same_memory(const Mapping& a, const Mapping& b) {
  return a.begin == b.begin && a.end == b.end && a.offset == b.offset && a.device == b.device && a.inode == b.inode &&
         a.shared == b.shared;
}

bool has(const std::vector<TargetModule>& modules, const TargetModule& wanted) {
  return std::any_of(modules.begin(), modules.end(),
                     [&](const TargetModule& module) { return same_module(module, wanted); });
}

}  // namespace

Target::Target(TargetIdentity identity, ArenaAccess& arena, std::uint64_t period_ns, const MemoryEvents& memory)
    : identity_(identity),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, identity.pid, 0))),
      arena_(arena),
      memory_events_(memory),
      memory_(identity.pid),
      tracing_(identity.pid),
      period_ns_(period_ns) {}

watch_policy::Board& Target::board() {
  if (board_ == nullptr) {
    board_ = make_zeroed<watch_policy::Board>();
    board_->start(arena().config.board_slots);
  }
  return *board_;
}

Result<void> Target::begin() {
  with_kernel_ = kernel_allowed(living_thread(pid()));
  maps_ = maps_of(pid());
  if (Result<void> readable = check_memory(pid(), maps_); !readable) {
    return readable;
  }
  const std::vector<pid_t> tids = threads_of(pid());
  if (!identity_.newborn) {
    older_.insert(tids.begin(), tids.end());
  }
  Result<void> first;
  for (const pid_t tid : tids) {
    if (Result<void> met = meet(tid); !met && first) {
      first = std::move(met);
    }
  }
  if (threads_.empty()) {
    return first && observer::has_ended(pid()) ? fail(ErrorCode::not_found, "it has ended") : first;
  }
  meet_all();
  if (!identity_.newborn || identity_.whole_life) {
    begin_cpu_times();
  }
  return {};
}

bool Target::has_ended() const {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return pidfd_.valid() ? ::poll(&ended, 1, 0) > 0 : observer::has_ended(pid());
}

bool Target::watched(pid_t tid) const {
  return std::any_of(threads_.begin(), threads_.end(), [tid](const auto& thread) { return thread->tid == tid; });
}

void Target::meet_all() {
  for (int look = 0; look < most_looks; ++look) {
    bool any = false;
    for (const pid_t tid : threads_of(pid())) {
      any = (!watched(tid) && meet(tid) && watched(tid)) || any;
    }
    if (!any) {
      return;
    }
  }
}

Result<Target::Events> Target::open_events(pid_t tid, std::uint64_t period_ns, bool briefly, std::uint64_t& random) {
  constexpr std::uint32_t part = 4;  // of a ring, after which it is read
  const std::uint32_t wakeup_bytes = briefly ? ring_pages(threads_.size()) * ring_page_bytes / part : 1;
  Result<OpenEvent> clock =
      open_clock(tid, {watch_policy::first_expiry(period_ns, random), with_kernel_, wakeup_bytes});
  if (!clock) {
    return tl::unexpected<Error>(clock.error());
  }
  Result<PerfRing> ring = map_ring(*clock, ring_pages(threads_.size()));
  if (!ring) {
    return fail(ErrorCode::permission,
                ring.error().message + "; more locked memory helps: kernel.perf_event_mlock_kb, ulimit -l");
  }
  return Events{std::move(*clock), std::move(*ring), open_memory(tid, random)};
}

/// Nothing if the thread's accesses cannot be sampled: it has its clock alone.
std::optional<MemorySampler> Target::open_memory(pid_t tid, std::uint64_t& random) {
  if (memory_events_.empty()) {
    return std::nullopt;
  }
  SamplingPlace place;
  place.tid = tid;
  Result<MemorySampler> sampler = MemorySampler::open(memory_events_, place, memory_periods_, random);
  if (!sampler) {
    if (sampler.error().code != ErrorCode::not_found) {
      unmeasured_.insert(tid);
      why_unmeasured_ = sampler.error().message;
    }
    return std::nullopt;
  }
  return std::move(*sampler);
}

void Target::start(WatchedThread& thread) {
  enable_event(thread.clock);
  if (thread.memory) {
    thread.memory->enable();
  }
}

void Target::rest(WatchedThread& thread) {
  thread.cpu_before_ns += read_clock(thread.clock);
  thread.events.reset();
  thread.memory.reset();
  thread.clock = {};
}

bool Target::rouse(WatchedThread& thread) {
  Result<Events> events = thread.process->open_events(thread.tid, thread.period_ns, thread.part < 1, thread.random);
  if (!events) {
    return false;
  }
  thread.clock = std::move(events->clock);
  thread.events.emplace(std::move(events->ring));
  thread.memory = std::move(events->memory);
  thread.fresh = true;
  thread.first_period_ns = thread.period_ns;
  thread.cpu_ns = thread.cpu_before_ns;
  start(thread);
  return true;
}

Result<std::unique_ptr<WatchedThread>> Target::make_thread(pid_t tid) {
  const profile::SessionConfig& config = arena().config;
  const std::uint64_t stream = std::uint64_t{identity_.number} << 32U | ++begun_;
  std::uint64_t random = random_state(config.seed != 0 ? config.seed : monotonic_ns(), stream);
  Result<Events> events = open_events(tid, period_ns_, false, random);
  if (!events) {
    return tl::unexpected<Error>(events.error());
  }
  const std::optional<ThreadFacts> facts = thread_facts(pid(), tid);
  std::unique_ptr<ArenaRing> records = facts ? arena_.claim(pid(), tid) : nullptr;
  if (!records) {
    return is_there(pid(), tid)
               ? fail(ErrorCode::system, "there are too many threads, or too few descriptors (ulimit -n)")
               : fail(ErrorCode::not_found, "thread " + std::to_string(tid) + " is gone");
  }
  auto thread =
      std::make_unique<WatchedThread>(tid, std::move(records), std::move(events->clock), std::move(events->ring));
  thread->process = this;
  thread->memory = std::move(events->memory);
  thread->random = random;
  thread->period_ns = thread->first_period_ns = period_ns_;
  thread->begin_ns = monotonic_ns();
  thread->switches_before = facts->switches;
  thread->life_before_ns = older_.contains(tid) ? facts->cpu_ns : 0;
  thread->cpu_ns = thread->cpu_before_ns = thread->recorded_ns(facts->cpu_ns);
  const auto stack =
      std::find_if(maps_.begin(), maps_.end(), [](const Mapping& mapping) { return mapping.path == "[stack]"; });
  if (tid == pid() && stack != maps_.end()) {
    thread->stack_low = stack->begin;
    thread->stack_high = stack->end;
  }
  write_start(*thread, facts->name);
  return thread;
}

Result<void> Target::meet(pid_t tid) {
  if (left_ || watched(tid)) {
    return {};
  }
  Result<std::unique_ptr<WatchedThread>> thread = make_thread(tid);
  const bool first = !met_before_.contains(tid) && met_.insert(tid).second;
  if (!thread) {
    if (thread.error().code == ErrorCode::not_found) {
      missed_ += first ? 1 : 0;  // else the report of its start comes after its end
    } else {
      refused_.insert(tid);
      refusal_ = thread.error().message;
    }
    return tl::unexpected<Error>(thread.error());
  }
  start(**thread);  // an exec from now on is reported, so the facts read next do not become outdated unnoticed
  (*thread)->records->go_live();
  if (!std::exchange(announced_, true)) {
    write_process(**thread);
  }
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
  record.pid = pid();
  record.tid = thread.tid;
  record.stack_low = thread.stack_low;
  record.stack_high = thread.stack_high;
  copy_name(name, record.name);
  thread.records->write(record);
}

void Target::write_process(WatchedThread& thread) const {
  const ProcessFacts facts = settled_facts(pid());
  profile::ProcessStart record;
  record.header.type = profile::RecordType::process_start;
  record.time_ns = thread.begin_ns;
  record.pid = pid();
  record.parent_pid = identity_.parent != 0 ? identity_.parent : facts.parent;
  record.observation = profile::Observation::outside;
  record.own_totals = identity_.whole_life ? 0 : 1;
  std::string text = facts.executable + '\0';
  for (const std::string& argument : facts.arguments) {
    text += argument + '\0';
  }
  constexpr std::size_t longest = std::size_t{16} << 10U;
  thread.records->write(record, text.data(), std::min(text.size(), longest));
}

void Target::tend(std::uint64_t now_ns, double allowed) {
  constexpr double least_pause_ns = 200e6;
  constexpr double most_pause_ns = 5e9;
  const bool due = (maps_changed_ && now_ns >= maps_due_ns_) || (maps_doubtful_ && now_ns >= doubtful_maps_due_ns_);
  if (!due) {
    return;
  }
  maps_changed_ = maps_doubtful_ = false;
  const std::uint64_t before_ns = thread_cpu_ns();
  read_maps(now_ns);
  const double affordable_ns = static_cast<double>(thread_cpu_ns() - before_ns) / allowed;
  maps_due_ns_ = now_ns + static_cast<std::uint64_t>(least_pause_ns);
  doubtful_maps_due_ns_ = now_ns + static_cast<std::uint64_t>(std::clamp(affordable_ns, least_pause_ns, most_pause_ns));
}

/// To find modules takes some reads of the process's memory for each. A heap that grows leaves them as they are; code
/// may be copied to its place after it was mapped, so they are looked at again now and then.
bool Target::may_have_other_modules(std::uint64_t now_ns) {
  constexpr std::uint64_t pause_ns = 2'000'000'000;
  std::vector<Mapping> code = of_files_or_code(maps_);
  if (code == code_maps_ && now_ns < modules_due_ns_) {
    return false;
  }
  code_maps_ = std::move(code);
  modules_due_ns_ = now_ns + pause_ns;
  return true;
}

void Target::read_maps(std::uint64_t now_ns) {
  std::vector<Mapping> maps = threads_.empty() ? std::vector<Mapping>() : maps_of(pid());
  if (maps.empty()) {
    return;  // it is gone
  }
  maps_ = std::move(maps);
  std::erase_if(recorded_, [this](const Mapping& mapping) {
    const Mapping* const now = mapping_at(maps_, mapping.begin);
    return now == nullptr || !same_memory(*now, mapping);
  });
  if (!may_have_other_modules(now_ns)) {
    return;
  }
  std::vector<TargetModule> modules = modules_of(maps_, memory_);
  std::vector<TargetModule> parts = parts_of(maps_, modules);
  std::move(parts.begin(), parts.end(), std::back_inserter(modules));
  write_modules(std::move(modules));
}

void Target::write_modules(std::vector<TargetModule> modules) {
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
  std::vector<TargetModule> told;
  for (TargetModule& module : modules) {
    const bool known = has(modules_, module);
    module.record.time_ns = known ? module.record.time_ns : now_ns;
    if (known || records.write(module.record, module.path.data(), module.path.size())) {
      told.push_back(std::move(module));
    } else {
      maps_changed_ = true;  // the ring is full: again at the next look
      modules_due_ns_ = 0;
    }
  }
  modules_ = std::move(told);
}

watch_policy::SharedLine Target::touch(WatchedThread& thread, std::uint64_t address, std::uint64_t time_ns) {
  const Mapping* const mapping = mapping_at(maps_, address);
  const watch_policy::SharedLine line =
      mapping != nullptr ? shared_line_in(*mapping, address) : watch_policy::SharedLine{};
  const auto is_it = [&](const Mapping& known) { return same_memory(known, *mapping); };
  if (!line.known || std::any_of(recorded_.begin(), recorded_.end(), is_it)) {
    return line;
  }
  profile::SharedMapping record;
  record.header.type = profile::RecordType::shared_mapping;
  record.time_ns = time_ns;
  record.begin = mapping->begin;
  record.bytes = mapping->end - mapping->begin;
  record.file_offset = mapping->offset;
  record.device = mapping->device;
  record.inode = mapping->inode;
  thread.records->write(record, mapping->path.data(), mapping->path.size());
  recorded_.push_back(*mapping);
  touched_.insert(line.object());
  return line;
}

void Target::learn_stack(WatchedThread& thread, std::uint64_t stack_pointer) const {
  const Mapping* mapping = mapping_at(maps_, stack_pointer);
  if (thread.stack_high != 0 || mapping == nullptr || !mapping->writable ||
      mapping->end - mapping->begin > largest_stack) {
    return;
  }
  thread.stack_low = mapping->begin;
  thread.stack_high = mapping->end;
  const std::optional<ThreadFacts> facts = thread_facts(pid(), thread.tid);
  write_start(thread, facts ? facts->name : std::string());
}

void Target::part(const WatchedThread& gone, std::optional<std::uint64_t> exit_ns) {
  const auto found =
      std::find_if(threads_.begin(), threads_.end(), [&](const auto& thread) { return thread.get() == &gone; });
  if (found == threads_.end()) {
    return;
  }
  WatchedThread& thread = **found;
  const std::uint64_t end_ns = exit_ns.value_or(monotonic_ns());
  if (threads_.size() == 1 && (exit_ns || has_ended())) {
    profile::ProcessEnd record;
    record.header.type = profile::RecordType::process_end;
    record.time_ns = end_ns;
    record.pid = pid();
    thread.records->write(record);
  }
  profile::ThreadEnd record;
  record.header.type = profile::RecordType::thread_end;
  record.time_ns = end_ns;
  // A thread that rests has used time that its clock did not count.
  const std::uint64_t life_ns = exit_ns ? 0 : cpu_time_of(pid(), thread.tid);
  record.cpu_ns =
      std::max({thread.cpu_before_ns + read_clock(thread.clock) + thread.uncounted_ns,
                thread.records->slot().cpu_ns.load(std::memory_order_relaxed), thread.recorded_ns(life_ns)});
  record.voluntary_switches = thread.records->slot().switches.load(std::memory_order_relaxed);
  thread.records->slot().cpu_ns.store(record.cpu_ns, std::memory_order_relaxed);
  thread.records->write(record);
  thread.records->end();
  parted_ns_ += record.cpu_ns;
  threads_.erase(found);
  if (threads_.empty()) {  // of threads that end together, the process's time had more than ours so far
    count_cpu_times();
  }
}

/// All time so far that is not its threads' is not to be recorded.
void Target::begin_cpu_times() {
  const std::uint64_t all_ns = process_cpu_ns(pid());
  cpu_before_ns_ = all_ns - std::min(all_ns, parted_ns_ + times_.unobserved_ns);
  for (const auto& thread : threads_) {
    cpu_before_ns_ -= std::min(thread->cpu_before_ns, cpu_before_ns_);
  }
}

void Target::count_cpu_times() {
  if (const std::uint64_t now_ns = process_cpu_ns(pid()); now_ns != 0) {  // else it is gone
    all_ns_ = now_ns;
  }
  times_.observed_ns = parted_ns_;
  for (const auto& thread : threads_) {
    times_.observed_ns += std::max(thread->ran_ns, thread->records->slot().cpu_ns.load(std::memory_order_relaxed));
  }
  const std::uint64_t known_ns = cpu_before_ns_ + times_.observed_ns;
  times_.unobserved_ns = all_ns_ - std::min(known_ns, all_ns_);
}

void Target::part_all() {
  while (!threads_.empty()) {
    part(*threads_.back(), std::nullopt);
  }
}

void Target::leave() {
  part_all();
  left_ = true;
}

void Target::begin_anew() {
  part_all();
  announced_ = false;
  modules_.clear();
  recorded_.clear();
  touched_.clear();
  maps_ = maps_of(pid());
  older_.clear();
  if (!identity_.whole_life) {
    const std::vector<pid_t> tids = threads_of(pid());
    older_ = {tids.begin(), tids.end()};  // their records under the former program have their time
  }
  meet_all();
  begin_cpu_times();
  maps_due_ns_ = modules_due_ns_ = 0;
  expect_new_maps();
}

void Target::set_period(WatchedThread& thread, std::uint64_t period_ns) {
  if (std::exchange(thread.period_ns, period_ns) == period_ns) {
    return;
  }
  if (!thread.fresh && !thread.rests()) {  // else it has the new period once it has ticked
    set_event_period(thread.clock, period_ns);
  }
}

}  // namespace crosstalk::observer
