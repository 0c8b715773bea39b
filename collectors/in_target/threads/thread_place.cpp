// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/threads/thread_place.h"

#include <asm/prctl.h>
#include <sys/resource.h>

#include <algorithm>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

namespace {

// Returns the kernel's thread pointer, for fs_base() reads there: the program may change it for a while. libc's control
// block points to itself, twice (`tcb` and `self` of tcbhead_t). 0: it points to none.
std::uint64_t thread_pointer() {
  std::uint64_t base = 0;
  std::uint64_t head[3] = {};
  const bool known = system_call(SYS_arch_prctl, ARCH_GET_FS, &base) >= 0 &&
                     read_memory(base, static_cast<std::uint64_t*>(head), sizeof head, runtime().pid) == sizeof head;
  return known && head[0] == base && head[2] == base ? base : 0;
}

}  // namespace

ThreadPlace place_of_libc_thread(std::uint64_t stack_pointer) {
  constexpr std::uint64_t largest_stack = 1ULL << 30U;
  modules::MappedFile stack;
  if (!modules::find_mapped_file(stack_pointer, stack, nullptr, 0)) {
    return {};
  }
  ThreadPlace place{stack.begin, stack.end, thread_pointer()};
  // Its control block lies on top of its stack, and thread-local variables below that.
  if (place.thread_pointer > stack_pointer && place.thread_pointer < stack.end) {
    place.stack_high = place.thread_pointer + static_cast<std::uint64_t>(modules::lowest_static_tls());
  }
  rlimit64 limit{};
  if (kernel_thread_id() == runtime().pid && system_call(SYS_prlimit64, 0, RLIMIT_STACK, nullptr, &limit) >= 0) {
    place.stack_low = std::min(stack.begin, stack.end - std::min<std::uint64_t>(limit.rlim_cur, largest_stack));
  }
  return place;
}

}  // namespace crosstalk::in_target
