// SPDX-License-Identifier: Apache-2.0
#include "tests/in_target/fake_kernel.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/processes/shared_maps.h"
#include "collectors/in_target/processes/shared_memory.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/ring_reader.h"
#include "tests/in_target/split_records.h"

namespace crosstalk::in_target {
namespace test {
namespace {

constexpr std::uint32_t threads_most = 64;
constexpr std::uint32_t bytes_of_a_ring = 1U << 18U;
constexpr std::int32_t first_invented_tid = 1'000'000'000;

FakeKernel* kernel = nullptr;

/// A page of its own for `mov %rax, (%rdi)` and one for `mov (%rdi), %rax`: code around an instruction is read up to
/// its page's ends.
constexpr std::size_t code_page_bytes = 4096;
constexpr std::size_t access_at = code_page_bytes / 2;
constexpr std::size_t behind_access = access_at + 3;
using CodePage = std::array<std::uint8_t, code_page_bytes>;

constexpr CodePage page_with(std::uint8_t opcode) {
  CodePage code{};
  code.fill(0x90);
  code[access_at] = 0x48, code[access_at + 1] = opcode, code[access_at + 2] = 0x07;
  return code;
}
alignas(code_page_bytes) constinit const CodePage store_code = page_with(0x89);
alignas(code_page_bytes) constinit const CodePage load_code = page_with(0x8b);

FakeEvent* event_of(const OwnedEvent& event) {
  const auto index = static_cast<std::size_t>(event.fd) - 1;
  return event.fd > 0 && index < kernel->events.size() && kernel->events[index].open ? &kernel->events[index] : nullptr;
}

long open(std::uint32_t word, OwnedEvent& event) {
  kernel->events.push_back({word, true, {}});
  event.fd = static_cast<int>(kernel->events.size());
  event.id = static_cast<std::uint64_t>(event.fd);
  return 0;
}

}  // namespace

struct FakeKernel::Ring {
  std::vector<std::byte> bytes = std::vector<std::byte>(bytes_of_a_ring);
  std::unique_ptr<profile::RingReader> reader;
};

FakeKernel::FakeKernel() {
  const std::size_t slots_at = (sizeof(profile::ArenaHeader) + 63) / 64 * 64;
  arena_.resize(slots_at + threads_most * sizeof(profile::ThreadSlot) + 64);
  auto at = reinterpret_cast<std::uintptr_t>(arena_.data());
  at = (at + 63) / 64 * 64;
  auto* header = new (reinterpret_cast<void*>(at)) profile::ArenaHeader;  // NOLINT: within arena_
  header->slots_offset = slots_at;
  header->slot_count = threads_most;
  for (std::uint32_t i = 0; i < threads_most; ++i) {
    new (reinterpret_cast<std::byte*>(header) + slots_at + i * sizeof(profile::ThreadSlot)) profile::ThreadSlot;
  }
  Runtime& r = runtime();
  r.arena.header = header;
  r.slot_count = threads_most;
  r.pid = kernel_process_id();
  r.config = {};
  r.config.stacks_per_s = 0;
  r.budget.clear();
  r.budget.start(r.config.budget);
  registry().clear();
  kernel = this;
}

FakeKernel::~FakeKernel() { kernel = nullptr; }

ThreadState& FakeKernel::add_thread() {
  const auto index = static_cast<std::uint32_t>(rings_.size());
  const std::int32_t tid = index == 0 ? kernel_thread_id() : first_invented_tid + static_cast<std::int32_t>(index);
  ThreadState& thread = *registry().add(tid);
  profile::ThreadSlot& slot = *runtime().arena.slot(index);
  slot.pid.store(runtime().pid);
  slot.tid.store(tid);
  thread.slot = &slot;
  thread.watchpoints = &slot.watchpoints;
  thread.number = index + 1;
  thread.random = index + 1;
  thread.handler_stack = nullptr;
  thread.watch_tried = thread.blocks_traps = false;
  thread.keeps_events = true;
  thread.stray_traps = 0;
  for (OwnedEvent& event : thread.watch_event) {
    event = {};
  }
  thread.alarm_event = {};
  thread.alarm_since_ns = thread.alarm_until_ns = thread.alarm_ns = 0;
  thread.on_demand.store(0);
  thread.watch_events.store(0);
  thread.stack_low = thread.stack_high = 0;
  rings_.push_back(std::make_unique<Ring>());
  thread.ring.attach(&slot, rings_.back()->bytes.data(), bytes_of_a_ring);
  rings_.back()->reader = std::make_unique<profile::RingReader>(slot, rings_.back()->bytes.data(), bytes_of_a_ring);
  thread.phase.store(static_cast<std::uint32_t>(ThreadPhase::live));
  return thread;
}

WatchPlace FakeKernel::place(const ThreadState& thread, std::uint32_t event) const {
  const FakeEvent* found = event_of(thread.watch_event[event]);
  return found != nullptr ? found->place : WatchPlace{};
}

std::uint32_t FakeKernel::access(ThreadState& thread, std::uint64_t address, bool store, std::uint64_t now_ns) {
  Registers at_trap;
  at_trap[Register::rdi] = address;
  at_trap[Register::rip] =
      reinterpret_cast<std::uint64_t>(store ? &store_code[behind_access] : &load_code[behind_access]);
  at_trap[Register::rsp] = reinterpret_cast<std::uint64_t>(&at_trap);
  std::uint32_t fired = 0;
  for (std::uint32_t event = 0; event < max_words && !dead; ++event) {
    const WatchPlace at = place(thread, event);
    const bool hit = at.mode == WatchMode::read_write || (at.mode == WatchMode::write_only && store);
    if (hit && address < at.address + at.length && at.address < address + 8) {
      watch.trapped(thread, {event, at.address, at_trap, 0x202, now_ns});
      ++fired;
    }
  }
  return fired;
}

void FakeKernel::close_descriptors() {
  for (FakeEvent& event : events) {
    event.open = false;
  }
}

std::vector<std::vector<std::byte>> FakeKernel::records(ThreadState& thread) {
  std::vector<std::byte> batch;
  rings_[thread.number - 1]->reader->drain(batch);
  return split_records(batch);
}

}  // namespace test

// sys/perf_events.h

long open_watch_event(std::int32_t /*tid*/, std::uint32_t word, OwnedEvent& event) {
  return word < test::kernel->registers ? test::open(word, event) : -ENOSPC;
}

long set_watch_event(const OwnedEvent& event, const WatchPlace& place) {
  test::FakeEvent* found = test::event_of(event);
  if (found == nullptr) {
    return -EBADF;
  }
  found->place = place;
  if (const std::function<void()> next = std::exchange(test::kernel->after_set, nullptr); next) {
    next();
  }
  return 0;
}

long open_alarm_event(OwnedEvent& event) { return test::open(0, event); }

long start_alarm(const OwnedEvent& event, std::uint64_t /*cpu_ns*/) {
  ++test::kernel->alarms_set;
  return test::event_of(event) != nullptr ? 0 : -EBADF;
}

long stop_alarm(const OwnedEvent& event) { return test::event_of(event) != nullptr ? 0 : -EBADF; }

void close_event(OwnedEvent& event) {
  if (test::FakeEvent* found = test::event_of(event); found != nullptr) {
    found->open = false;
  }
  event = {};
}

bool has_hidden_numbers() { return true; }
bool has_spare_numbers() { return test::kernel->spare_numbers; }
long open_hidden(Opener open, const void* what) { return open(what); }

// The fake has a single process, unless a test says otherwise.

bool sharing() { return test::kernel != nullptr && test::kernel->sharing; }
std::uint32_t find_uses(const SharedLine& /*line*/, SharedUse* uses, std::uint32_t capacity) {
  const std::vector<SharedUse>& all = test::kernel->uses;
  const std::size_t count = std::min<std::size_t>(all.size(), capacity);
  std::copy_n(all.begin(), count, uses);
  return static_cast<std::uint32_t>(count);
}
void remote_events_refused() {}
CrossProcessState& cross_process_state() {
  static CrossProcessState state;
  return state;
}
void note_code_address(std::uint64_t /*address*/) {}

}  // namespace crosstalk::in_target
