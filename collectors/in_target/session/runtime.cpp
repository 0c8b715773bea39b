// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/runtime.h"

#include <cstring>

#include "collectors/in_target/sampling/clocks.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"
#include "collectors/in_target/threads/threads.h"

namespace crosstalk::in_target {
namespace {

constinit Runtime the_runtime;
constinit Registry the_registry;
constinit watch_policy::Board the_board;
constinit AccessFinder the_finder;

constexpr std::uint64_t stack_burst_ns = 1'000'000'000;  // a second's worth of stacks may be copied at once

enum Said : std::uint32_t { said_watch_events = 1, said_descriptors = 2, said_strays = 4 };

bool first_time(Said what) { return (runtime().said.fetch_or(what, std::memory_order_relaxed) & what) == 0; }

}  // namespace

Runtime& runtime() { return the_runtime; }
Registry& registry() { return the_registry; }
watch_policy::Board& board() { return the_board; }
AccessFinder& finder() { return the_finder; }

bool observing() { return the_runtime.observing.load(std::memory_order_relaxed); }

const profile::SessionConfig* session_config() {
  return the_runtime.arena.header != nullptr ? &the_runtime.config : nullptr;
}

std::int32_t attached_pid() { return the_runtime.pid; }

ThreadState* current_thread() { return registry().find(kernel_thread_id()); }

bool append(ThreadState& self, const void* record, std::size_t bytes, const void* tail, std::size_t tail_bytes) {
  const std::size_t size = profile::record_bytes(bytes, tail_bytes);
  std::byte* at = self.ring.reserve(size);
  if (at == nullptr) {
    return false;
  }
  std::memcpy(at, record, bytes);
  profile::RecordHeader header;
  std::memcpy(&header, record, sizeof header);
  header.size = static_cast<std::uint16_t>(size);
  header.tail = static_cast<std::uint32_t>(tail_bytes);
  std::memcpy(at, &header, sizeof header);
  if (tail_bytes != 0) {
    std::memcpy(at + bytes, tail, tail_bytes);
  }
  self.ring.commit();
  return true;
}

bool emit(const void* fixed, std::size_t fixed_bytes, const void* tail, std::size_t tail_bytes) {
  ThreadState* self = kernel_process_id() == the_runtime.pid ? current_thread() : nullptr;
  return self != nullptr && append(*self, fixed, fixed_bytes, tail, tail_bytes);
}

void emit_message(const char* code, const char* text) {
  profile::Message record;
  record.header.type = profile::RecordType::message;
  record.time_ns = monotonic_ns();
  for (std::size_t i = 0; i + 1 < sizeof record.code && code[i] != 0; ++i) {
    record.code[i] = code[i];
  }
  std::size_t length = 0;
  while (text[length] != 0) {
    ++length;
  }
  emit(&record, sizeof record, text, length);
}

std::uint32_t new_watch_id() {
  return the_runtime.arena.header->next_watch.fetch_add(1, std::memory_order_relaxed) + 1;
}

void watch_events_missing(long error, std::uint32_t opened) {
  constexpr long no_space = -28;    // ENOSPC: somebody else, a debugger say, holds debug registers
  constexpr long no_numbers = -24;  // EMFILE
  if (!first_time(said_watch_events)) {
    return;
  }
  if (error == no_space && opened > 0) {
    emit_message("few_debug_registers",
                 "some debug registers are held by another program (a debugger?): fewer lines are watched at a time");
  } else if (error == no_space) {
    emit_message("no_debug_register",
                 "all debug registers are held by another program (a debugger?): communication is not observed");
  } else if (error == no_numbers) {
    emit_message("few_descriptors",
                 "the program's limit of descriptors leaves none for watchpoints that it would not miss: communication "
                 "is not observed in it; a hard limit above the soft one helps (ulimit -Hn)");
  } else {
    emit_message("watchpoints_refused",
                 "the kernel refuses watchpoints to this program: communication is not observed in it");
  }
}

void too_many_strays() {
  if (first_time(said_strays)) {
    emit_message("watchpoint_astray", "a watchpoint fired where none was set: some threads are no longer watched");
  }
}

void descriptors_closed() {
  if (first_time(said_descriptors)) {
    emit_message("descriptors_closed",
                 "the program closed descriptors that it did not open: communication is not observed in some threads");
  }
}

std::size_t copy_stack(const ThreadState& self, const Registers& registers, std::uint64_t now_ns, std::byte* buffer,
                       std::size_t capacity) {
  Runtime& r = the_runtime;
  const std::uint32_t rate = r.config.stacks_per_s;
  if (rate == 0) {
    return 0;
  }
  const std::uint64_t price = stack_burst_ns / rate;
  std::uint64_t paid = r.stack_tokens_ns.load(std::memory_order_relaxed);
  const std::uint64_t from = now_ns > paid + stack_burst_ns ? now_ns - stack_burst_ns : paid;
  if (from + price > now_ns ||
      !r.stack_tokens_ns.compare_exchange_strong(paid, from + price, std::memory_order_relaxed)) {
    return 0;
  }
  profile::StackSlice slice;
  slice.registers = registers;
  std::size_t bytes = r.config.stack_bytes < capacity - sizeof slice ? r.config.stack_bytes : capacity - sizeof slice;
  const std::uint64_t begin = registers[Register::rsp];
  if (begin >= self.stack_low && begin < self.stack_high && self.stack_high - begin < bytes) {
    bytes = self.stack_high - begin;
  }
  bytes = read_memory(begin, buffer + sizeof slice, bytes, r.pid) & ~std::size_t{7};
  slice.bytes = bytes;
  std::memcpy(buffer, &slice, sizeof slice);
  return sizeof slice + bytes;
}

namespace {

/// The lowest words of the interrupted stack; false when they are not all there.
bool read_frame(const Registers& registers, std::uint64_t (&frame)[profile::trap_frame_words]) {
  return read_memory(registers[Register::rsp], frame, sizeof frame, the_runtime.pid) == sizeof frame;
}

}  // namespace

bool read_state(std::uint64_t line, profile::LineState& state) {
  std::uint64_t words[profile::LineState::words];
  if (read_memory(line, words, sizeof words, the_runtime.pid) != sizeof words) {
    return false;
  }
  for (std::size_t i = 0; i < profile::LineState::words; ++i) {
    state.word[i] = static_cast<std::uint16_t>((words[i] * 0x9e3779b97f4a7c15ULL) >> 48U);  // Fibonacci hashing
  }
  return true;
}

void record_trap(ThreadState& self, const TrapFacts& facts, const Registers& registers, std::uint64_t now_ns) {
  static std::byte buffer[8192];
  static constinit ProcessFlag taken;
  profile::WatchTrap record;
  record.header.type = profile::RecordType::watch_trap;
  record.time_ns = now_ns;
  record.ip = registers[Register::rip];
  record.watch = facts.watch;
  record.sequence = facts.sequence;
  record.cpu = current_cpu();
  record.word = facts.word;
  record.write_only = facts.write_only ? 1 : 0;
  record.line = facts.opener_elsewhere ? facts.line : 0;
  record.has_state = read_state(facts.line, record.state) ? 1 : 0;
  record.stack.registers = registers;
  record.has_frame = !facts.write_only && read_frame(registers, record.frame) ? 1 : 0;
  std::size_t bytes = 0;
  const TryLock lock(taken, the_runtime.pid);
  if (lock.held()) {
    bytes = copy_stack(self, registers, now_ns, buffer, sizeof buffer);
  }
  record.has_stack = bytes != 0 ? 1 : 0;
  record.stack.bytes = bytes != 0 ? bytes - sizeof(profile::StackSlice) : 0;
  append(self, &record, sizeof record, buffer + sizeof(profile::StackSlice), record.stack.bytes);
  self.slot->traps.fetch_add(1, std::memory_order_relaxed);
  note_code_address(record.ip);
}

}  // namespace crosstalk::in_target
