// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/wait_sampler.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "base/units.h"

namespace crosstalk::observer {
namespace {

constexpr std::uint64_t second = 1'000'000'000;
constexpr std::uint64_t first_pause_ns = 10'000'000;
constexpr std::uint64_t never = UINT64_MAX;

using Text = std::array<char, 256>;

/// Reads a file in /proc anew. Nothing: `errno` says why.
std::optional<std::string_view> text_of(const UniqueFd& file, Text& text) {
  const ssize_t bytes = ::pread(file.get(), text.data(), text.size(), 0);
  return bytes >= 0 ? std::optional(std::string_view(text.data(), static_cast<std::size_t>(bytes))) : std::nullopt;
}

std::optional<ScheduleTimes> times_of(const WaitLooks& looks) {
  Text text;
  const auto read = looks.schedule.valid() ? text_of(looks.schedule, text) : std::nullopt;
  return read ? parse_schedule(*read) : std::nullopt;
}

/// From when on the first look counts: since the thread was met, if it began while it was observed, so that the
/// scheduler's times are of that time; else from that look on.
LookTime first_moment(const WatchedThread& thread, const LookTime& first) {
  return thread.life_before_ns == 0 ? LookTime{std::min(thread.begin_ns, first.now_ns), 0} : first;
}

UniqueFd open_file(const std::string& folder, const char* name) {
  return UniqueFd(::open((folder + "/" + name).c_str(), O_RDONLY | O_CLOEXEC));
}

/// Copies the lowest part of the thread's stack: a library that waits keeps little there.
std::vector<std::byte> copy_stack(const WatchedThread& thread, std::uint64_t from) {
  constexpr std::uint64_t most = 2048;
  const Mapping* const mapping = mapping_at(thread.process->maps(), from);
  if (mapping == nullptr) {
    thread.process->expect_new_maps();
  }
  const std::uint64_t end = mapping != nullptr ? mapping->end : (from | (page_bytes - 1)) + 1;
  std::vector<std::byte> stack(std::min(most, end - from) & ~std::uint64_t{7});
  if (!thread.process->memory().read(from, stack.data(), stack.size())) {
    stack.clear();
  }
  return stack;
}

Registers registers_of(const SleepingCall& call) {
  Registers registers;
  registers[Register::rip] = call.instruction;
  registers[Register::rsp] = call.stack_pointer;
  registers[Register::rax] = call.number;
  constexpr std::array<Register, SleepingCall::most_arguments> arguments = {Register::rdi, Register::rsi, Register::rdx,
                                                                            Register::r10, Register::r8,  Register::r9};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    registers[arguments[i]] = call.arguments[i];
  }
  return registers;
}

profile::SampledWait record_of(profile::LookKind kind, const Looks& looks, std::uint64_t time_ns) {
  profile::SampledWait record;
  record.header.type = profile::RecordType::sampled_wait;
  record.time_ns = time_ns;
  record.looked_ns = looks.looked_ns;
  record.spread_ns = looks.spread_ns();
  record.looks = looks.looks;
  record.kind = kind;
  return record;
}

void tell(WatchedThread& thread) {
  if (!thread.looks || !thread.looks->tally) {
    return;
  }
  const WaitTally::Told told = thread.looks->tally->take();
  const std::uint64_t time_ns = thread.looks->tally->looked_ns();
  for (const WaitTally::Place& place : told.places) {
    profile::SampledWait record = record_of(profile::LookKind::waiting, place.looks, time_ns);
    record.futex = place.wait.futex;
    record.stack.registers = registers_of(place.wait.call);
    record.stack.bytes = place.wait.stack.size();
    thread.records->write(record, place.wait.stack.data(), place.wait.stack.size());
  }
  if (told.asleep.looks != 0) {
    thread.records->write(record_of(profile::LookKind::asleep, told.asleep, time_ns));
  }
  if (told.all.looks != 0) {
    profile::SampledWait record = record_of(profile::LookKind::all, told.all, time_ns);
    record.slept_ns = told.slept_ns.value_or(0);
    record.slept_known = told.slept_ns ? 1 : 0;
    thread.records->write(record);
  }
}

}  // namespace

std::uint64_t pause_between_looks(double look_ns, double processors, double budget) {
  constexpr double of_budget = 0.1;
  constexpr double least_share = 0.001;  // of a processor: the threads may all be asleep
  constexpr double shortest_ns = 10e6;
  constexpr double longest_ns = 1e9;
  const double share = std::max(least_share, of_budget * budget * processors);
  return static_cast<std::uint64_t>(std::clamp(look_ns / share, shortest_ns, longest_ns));
}

WaitSampler::WaitSampler(const profile::SessionConfig& config, std::uint64_t random, std::uint64_t now_ns)
    : budget_(config.budget),
      random_(random),
      pause_ns_(first_pause_ns),
      due_ns_(config.measure_waits != 0 ? now_ns : never),
      tell_due_ns_(now_ns + second),
      reviewed_ns_(now_ns) {}

void WaitSampler::refuse(WatchedThread& thread, int error) {
  thread.looks->refused = true;
  if (error == ESRCH || !is_there(thread.process->pid(), thread.tid)) {
    return;  // it is gone, which is told otherwise
  }
  ++unknown_.threads;
  unknown_.why = folder_of_thread(thread.process->pid(), thread.tid) + "/syscall: " + std::strerror(error);
}

/// Notes where the thread sleeps, if it does. False: the kernel does not say.
bool WaitSampler::note(WatchedThread& thread, const LookTime& time) {
  WaitLooks& looks = *thread.looks;
  Text text;
  const auto shown = text_of(looks.call, text);
  if (!shown) {
    return false;
  }
  constexpr std::string_view awake = "running";
  const auto call = parse_sleeping_call(*shown);
  const auto futex = call ? awaited_futex(*call) : std::nullopt;
  if (shown->starts_with(awake)) {
    looks.tally->awake(time);
    return true;
  }
  if (!futex) {
    looks.tally->asleep_elsewhere(time);
    return true;
  }
  FutexWait wait{*futex, *call, copy_stack(thread, call->stack_pointer)};
  const auto now = times_of(looks);
  if (now && looks.times && now->turns != looks.times->turns) {
    wait.stack.clear();  // it runs by now, and has perhaps changed its stack
  }
  if (looks.tally->is_full()) {
    tell(thread);
  }
  looks.tally->asleep(time, std::move(wait), [&thread](std::uint64_t address) {
    const Mapping* const mapping = mapping_at(thread.process->maps(), address);
    return mapping != nullptr && mapping->executable;
  });
  return true;
}

void WaitSampler::begin(WatchedThread& thread) {
  const std::string folder = folder_of_thread(thread.process->pid(), thread.tid);
  UniqueFd schedule = open_file(folder, "schedstat");
  UniqueFd call = open_file(folder, "syscall");
  const int error = errno;
  thread.looks = std::make_unique<WaitLooks>(std::move(call), std::move(schedule));
  if (!thread.looks->call.valid()) {
    refuse(thread, error);
  }
}

void WaitSampler::look(WatchedThread& thread) {
  if (!thread.looks) {
    begin(thread);
  }
  WaitLooks& looks = *thread.looks;
  if (looks.refused) {
    return;
  }
  const auto times = times_of(looks);
  const LookTime time{monotonic_ns(), times ? std::optional(times->awake_ns) : std::nullopt};
  const auto before = std::exchange(looks.times, times);
  if (!looks.tally) {
    looks.tally.emplace(first_moment(thread, time));
  }
  if (times && before && times->turns == before->turns && looks.tally->is_asleep()) {
    looks.tally->still_asleep(time);
  } else if (!note(thread, time)) {
    refuse(thread, errno);
  }
}

void WaitSampler::look(const Targets& targets, std::uint64_t now_ns) {
  if (now_ns < due_ns_) {
    return;
  }
  const std::uint64_t before_ns = thread_cpu_ns();
  const bool tells = now_ns >= tell_due_ns_;
  std::size_t threads = 0;
  for (const auto& process : targets.processes()) {
    if (targets.may_be_others(*process)) {
      continue;
    }
    for (const auto& thread : process->threads()) {
      look(*thread);
      if (tells) {
        tell(*thread);
      }
      ++threads;
    }
  }
  if (tells) {
    constexpr std::uint64_t pause_of_thread_ns = 20'000'000;  // a record of a place has its stack
    tell_due_ns_ = now_ns + std::max(second, threads * pause_of_thread_ns);
  }
  spent_ns_ += thread_cpu_ns() - before_ns;
  ++rounds_;
  const double by_chance = 0.5 + uniform(random_);  // mean 1
  due_ns_ = monotonic_ns() + static_cast<std::uint64_t>(static_cast<double>(pause_ns_) * by_chance);
}

void WaitSampler::look_at_last(const Targets& targets) {
  if (due_ns_ != never) {
    due_ns_ = 0;
    look(targets, monotonic_ns());
  }
}

void WaitSampler::leave(WatchedThread& thread) { tell(thread); }

void WaitSampler::review(std::uint64_t cpu_ns, std::uint64_t now_ns) {
  constexpr double waking_ns = 30'000;  // of the observer, and to look at all it has to do then
  if (rounds_ == 0 || now_ns <= reviewed_ns_) {
    return;
  }
  const double look_ns = static_cast<double>(spent_ns_) / static_cast<double>(rounds_) + waking_ns;
  const std::uint64_t ran_ns = cpu_ns - std::min(cpu_ns, std::exchange(reviewed_cpu_ns_, cpu_ns));
  const double processors = static_cast<double>(ran_ns) / static_cast<double>(now_ns - reviewed_ns_);
  pause_ns_ = pause_between_looks(look_ns, processors, budget_);
  reviewed_ns_ = now_ns;
  spent_ns_ = rounds_ = 0;
}

}  // namespace crosstalk::observer
