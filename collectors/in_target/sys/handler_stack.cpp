// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/handler_stack.h"

#include <errno.h>
#include <sys/mman.h>

#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

namespace {
constinit HandlerStacks the_stacks;
}  // namespace

HandlerStacks& handler_stacks() { return the_stacks; }

std::uint32_t HandlerStacks::blocks() const {
  std::uint32_t count = 0;
  while (count < max_blocks && block_[count].load(std::memory_order_acquire) != 0) {
    ++count;
  }
  return count;
}

HandlerStack* HandlerStacks::at(std::uint64_t address) {
  for (std::uint32_t i = 0; i < max_blocks; ++i) {
    const std::uint64_t base = block_[i].load(std::memory_order_acquire);
    if (base == 0) {
      break;
    }
    const std::uint64_t offset = address - base - 1;  // a stack pointer that is at the top belongs to the stack below
    if (offset < block_bytes) {
      return &stacks_[std::size_t{i} * in_a_block + offset / stack_bytes];
    }
  }
  return nullptr;
}

HandlerStack* HandlerStacks::take_free(std::uint32_t blocks, std::int32_t tid) {
  for (std::uint32_t i = 0; i < blocks * in_a_block; ++i) {
    HandlerStack& stack = stacks_[i];
    std::int32_t nobody = 0;
    if (stack.owner_.load(std::memory_order_relaxed) != 0 ||
        !stack.owner_.compare_exchange_strong(nobody, tid, std::memory_order_acq_rel)) {
      continue;
    }
    if (!prepare(stack, i)) {
      give(stack);
      return nullptr;
    }
    stack.placing = false;
    stack.set_target_stack({});
    return &stack;
  }
  return nullptr;
}

bool HandlerStacks::prepare(HandlerStack& stack, std::uint32_t index) {
  if (stack.high_ != 0) {
    return true;
  }
  const std::uint64_t begin =
      block_[index / in_a_block].load(std::memory_order_acquire) + index % in_a_block * stack_bytes;
  if (system_call(SYS_mprotect, begin + page, stack_bytes - page, PROT_READ | PROT_WRITE) < 0) {
    exhausted_.store(true, std::memory_order_relaxed);  // a limit of the program's: more is not asked for
    return false;
  }
  stack.low_ = begin + page;
  stack.high_ = begin + stack_bytes;
  return true;
}

// A thread that ended by a system call of its own has given nothing back.
void HandlerStacks::reclaim(std::uint32_t blocks, std::int32_t pid) {
  for (std::uint32_t i = 0; i < blocks * in_a_block; ++i) {
    std::int32_t owner = stacks_[i].owner_.load(std::memory_order_relaxed);
    if (owner != 0 && system_call(SYS_tgkill, pid, owner, 0) == -ESRCH) {
      stacks_[i].owner_.compare_exchange_strong(owner, 0, std::memory_order_acq_rel);
    }
  }
}

bool HandlerStacks::grow(std::uint32_t blocks) {
  constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  const long at = blocks < max_blocks && has_room_for(block_bytes)
                      ? system_call(SYS_mmap, nullptr, block_bytes, PROT_NONE, flags, -1, 0)
                      : -ENOMEM;
  if (at < 0) {
    exhausted_.store(true, std::memory_order_relaxed);
    return false;
  }
  system_call(SYS_munlock, at, block_bytes);  // mlockall(MCL_FUTURE) would have all of it in memory
  std::uint64_t none = 0;
  if (!block_[blocks].compare_exchange_strong(none, static_cast<std::uint64_t>(at), std::memory_order_acq_rel)) {
    system_call(SYS_munmap, at, block_bytes);  // another thread was first
    return true;
  }
  enter_own_memory(reinterpret_cast<void*>(at), block_bytes);  // NOLINT: the kernel's answer
  return true;
}

HandlerStack* HandlerStacks::take(std::int32_t pid, std::int32_t tid) {
  // Other threads may take all stacks of a new block. Each pass finds one block more than the last, so this ends.
  for (;;) {
    const std::uint32_t count = blocks();
    if (HandlerStack* stack = take_free(count, tid); stack != nullptr) {
      return stack;
    }
    if (exhausted_.load(std::memory_order_relaxed)) {
      break;
    }
    reclaim(count, pid);
    if (HandlerStack* stack = take_free(count, tid); stack != nullptr) {
      return stack;
    }
    if (!grow(count)) {
      break;
    }
  }
  return nullptr;
}

void HandlerStacks::after_fork(HandlerStack* kept, std::int32_t tid) {
  exhausted_.store(false, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < blocks() * in_a_block; ++i) {
    stacks_[i].owner_.store(&stacks_[i] == kept ? tid : 0, std::memory_order_relaxed);
  }
}

}  // namespace crosstalk::in_target
