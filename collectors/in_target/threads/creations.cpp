// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/creations.h"

#include <cstring>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/core/stack_copies.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/threads/threads.h"
#include "profile/records.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t again_after_ns = 1'000'000'000;

}  // namespace

void note_creation(const Registers& here) {
  const Runtime& r = runtime();
  ThreadState* const self = kernel_process_id() == r.pid ? current_thread() : nullptr;
  const std::uint64_t begin = here[Register::rsp];
  if (self == nullptr || begin < self->stack_low || begin >= self->stack_high) {
    return;
  }
  const std::uint64_t now_ns = monotonic_ns();
  if ((self->creation_frame == begin && now_ns - self->creation_ns < again_after_ns) || !allow_stack_copy(now_ns)) {
    return;
  }
  self->creation_frame = begin;
  self->creation_ns = now_ns;
  const std::uint64_t above = self->stack_high - begin;
  const std::size_t bytes = (above < r.config.stack_bytes ? above : r.config.stack_bytes) & ~std::uint64_t{7};
  profile::ThreadCreation record;
  const std::size_t size = profile::record_bytes(sizeof record, bytes);
  std::byte* const at = self->ring.reserve(size);
  if (at == nullptr) {
    return;
  }
  // Straight into the ring: the stack may be small. By the kernel: a program may have guard pages within its stack.
  const std::size_t got = read_memory(begin, at + sizeof record, bytes, r.pid) & ~std::size_t{7};
  record.header = {profile::RecordType::thread_creation, static_cast<std::uint16_t>(size),
                   static_cast<std::uint32_t>(got)};
  record.time_ns = now_ns;
  record.stack.registers = here;
  record.stack.bytes = got;
  std::memcpy(at, &record, sizeof record);
  self->ring.commit();
}

}  // namespace crosstalk::in_target
