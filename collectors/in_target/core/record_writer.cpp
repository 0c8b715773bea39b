// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/record_writer.h"

#include <cstring>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "profile/records.h"

namespace crosstalk::in_target {

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
  ThreadState* self = kernel_process_id() == attached_pid() ? current_thread() : nullptr;
  return self != nullptr && append(*self, fixed, fixed_bytes, tail, tail_bytes);
}

}  // namespace crosstalk::in_target
