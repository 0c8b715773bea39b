// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/trap_record.h"

#include <cstddef>

#include "collectors/in_target/core/record_writer.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/core/stack_copies.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"

namespace crosstalk::in_target {
namespace {

/// The lowest words of the interrupted stack; false when they are not all there.
bool read_frame(const Registers& registers, std::uint64_t (&frame)[profile::trap_frame_words]) {
  return read_memory(registers[Register::rsp], frame, sizeof frame, runtime().pid) == sizeof frame;
}

}  // namespace

bool read_state(std::uint64_t line, profile::LineState& state) {
  std::uint64_t words[profile::LineState::words];
  if (read_memory(line, words, sizeof words, runtime().pid) != sizeof words) {
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
  const TryLock lock(taken, runtime().pid);
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
