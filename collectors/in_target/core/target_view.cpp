// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/target_view.h"

#include <asm/prctl.h>

#include <cstring>

#include "base/units.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

namespace {

constexpr std::uint64_t red_zone = 128;  // System V ABI: below the stack pointer, and not the signal's
// Near the end of its stack a thread may be about to touch the guard, and a stack's bounds are known but roughly.
constexpr std::uint64_t near_end = 128 * 1024;

/// Not by memcpy: in a target built with a sanitizer that would be the sanitizer's, which knows whose bytes these are.
void copy_words(std::uint64_t address, void* out, std::size_t bytes) {
  const auto* from = reinterpret_cast<const volatile std::uint64_t*>(address);  // NOLINT: an address of the target
  auto* to = static_cast<std::byte*>(out);
  for (std::size_t i = 0; i * sizeof(std::uint64_t) < bytes; ++i) {
    const std::uint64_t word = from[i];
    std::memcpy(to + i * sizeof word, &word, sizeof word);
  }
}

/// True if the thread pointer points to a control block, or to memory that looks like one.
bool can_call_libraries(const ThreadState& self) {
  constexpr std::uint64_t guard_offset = 0x28;  // of the value that guards frames (GCC, Clang)
  std::uint64_t base = 0;
  if (system_call(SYS_arch_prctl, ARCH_GET_FS, &base) < 0 || (base == self.thread_pointer && base != 0)) {
    return true;
  }
  std::uint64_t guard = 0;
  return read_memory(base + guard_offset, &guard, sizeof guard, runtime().pid) == sizeof guard;
}

}  // namespace

TargetView::TargetView(const ThreadState& self, const Registers& registers)
    : ip_(registers[Register::rip]),
      can_decode_(can_call_libraries(self)),
      stack_begin_(registers[Register::rsp] - red_zone),
      stack_end_(self.stack_high) {
  if (stack_begin_ < self.stack_low + near_end || stack_begin_ >= stack_end_) {
    stack_begin_ = stack_end_ = 0;
  }
}

CodeReader TargetView::reader() { return {this, read_code, read_data, read_now}; }

bool TargetView::read_code(void* view, std::uint64_t address, void* out, std::size_t bytes) {
  const auto& self = *static_cast<TargetView*>(view);
  if (!self.can_decode_) {
    return false;
  }
  const std::uint64_t page = self.ip_ / page_bytes;
  if (address / page_bytes == page && (address + bytes - 1) / page_bytes == page) {
    std::memcpy(out, reinterpret_cast<const void*>(address), bytes);  // NOLINT: an address of the target
    return true;
  }
  return read_memory(address, out, bytes, runtime().pid) == bytes;
}

/// False: it does not lie there.
bool TargetView::read_stack(std::uint64_t address, void* out, std::size_t bytes) const {
  if (address >= stack_begin_ && address < stack_end_ && bytes <= stack_end_ - address &&
      address % sizeof(std::uint64_t) == 0 && bytes % sizeof(std::uint64_t) == 0) {
    copy_words(address, out, bytes);
    return true;
  }
  return false;
}

bool TargetView::read_data(void* view, std::uint64_t address, void* out, std::size_t bytes) {
  return static_cast<const TargetView*>(view)->read_stack(address, out, bytes) ||
         read_memory(address, out, bytes, runtime().pid) == bytes;
}

bool TargetView::read_now(void* view, std::uint64_t address, void* out, std::size_t bytes) {
  return static_cast<const TargetView*>(view)->read_stack(address, out, bytes) ||
         (is_present(address) && read_memory(address, out, bytes, runtime().pid) == bytes);
}

}  // namespace crosstalk::in_target
