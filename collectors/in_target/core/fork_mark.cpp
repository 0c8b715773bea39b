// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/fork_mark.h"

#include <atomic>
#include <cstdint>

#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

// A page that the kernel clears in a forked child's copy, and that a process sharing our memory finds unchanged.
constinit std::atomic<std::uint64_t>* fork_mark = nullptr;

}  // namespace

void set_fork_mark() {
  if (fork_mark != nullptr) {
    fork_mark->store(1, std::memory_order_relaxed);
  }
}

void make_fork_mark() {
  constexpr int wipe_on_fork = 18;  // MADV_WIPEONFORK
  void* const page = map_own_memory(page_bytes);
  if (page != nullptr && system_call(SYS_madvise, page, page_bytes, wipe_on_fork) >= 0) {
    fork_mark = static_cast<std::atomic<std::uint64_t>*>(page);
    set_fork_mark();
  }
}

bool is_unnoticed_fork() { return fork_mark != nullptr && fork_mark->load(std::memory_order_relaxed) == 0; }

}  // namespace crosstalk::in_target
