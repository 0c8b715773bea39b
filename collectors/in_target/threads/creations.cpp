// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/creations.h"

#include "collectors/in_target/sampling/stack_copies.h"
#include "collectors/in_target/session/record_writer.h"
#include "collectors/in_target/session/runtime.h"
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
  profile::ThreadCreation record;
  record.header.type = profile::RecordType::thread_creation;
  record.time_ns = now_ns;
  record.stack.registers = here;
  const std::uint64_t bytes = self->stack_high - begin;
  record.stack.bytes = (bytes < r.config.stack_bytes ? bytes : r.config.stack_bytes) & ~std::uint64_t{7};
  // The thread's own stack, in use from `begin` on.
  append(*self, &record, sizeof record, reinterpret_cast<const void*>(begin),  // NOLINT(performance-no-int-to-ptr)
         record.stack.bytes);
}

}  // namespace crosstalk::in_target
