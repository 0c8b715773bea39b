// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/stack_copies.h"

#include <atomic>
#include <cstring>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/watch_policy/stack_allowance.h"
#include "profile/records.h"

namespace crosstalk::in_target {
namespace {

constinit std::atomic<std::uint64_t> paid_until_ns{0};  // up to then the process's stack copies are paid for

}  // namespace

bool allow_stack_copy(std::uint64_t now_ns) {
  std::uint64_t paid = paid_until_ns.load(std::memory_order_relaxed);
  const auto with_this = watch_policy::pay_for_stack(paid, now_ns, runtime().config.stacks_per_s);
  return with_this && paid_until_ns.compare_exchange_strong(paid, *with_this, std::memory_order_relaxed);
}

std::size_t copy_stack(const ThreadState& self, const Registers& registers, std::uint64_t now_ns, std::byte* buffer,
                       std::size_t capacity) {
  if (!allow_stack_copy(now_ns)) {
    return 0;
  }
  const Runtime& r = runtime();
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

}  // namespace crosstalk::in_target
