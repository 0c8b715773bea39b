// SPDX-License-Identifier: Apache-2.0
#include "collectors/injector/safe_point.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace crosstalk::injector {
namespace {

/// Functions of libc that hold none of libc's locks while they wait or work: they wait for something of the program's.
constexpr std::array harmless = std::to_array<std::string_view>({
    "accept",
    "accept4",
    "clock_gettime",
    "clock_nanosleep",
    "epoll_pwait",
    "epoll_wait",
    "getpid",
    "gettimeofday",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "nanosleep",
    "pause",
    "poll",
    "ppoll",
    "pread64",
    "pselect",
    "pthread_barrier_wait",
    "pthread_clockjoin_np",
    "pthread_cond_clockwait",
    "pthread_cond_timedwait",
    "pthread_cond_wait",
    "pthread_join",
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_mutex_trylock",
    "pthread_mutex_unlock",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_unlock",
    "pthread_rwlock_wrlock",
    "pthread_self",
    "pthread_spin_lock",
    "pthread_timedjoin_np",
    "pwrite64",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "recvmsg",
    "sched_yield",
    "select",
    "sem_clockwait",
    "sem_post",
    "sem_timedwait",
    "sem_wait",
    "send",
    "sendmsg",
    "sendto",
    "sleep",
    "strcmp",
    "strlen",
    "syscall",
    "thrd_sleep",
    "thrd_yield",
    "usleep",
    "wait4",
    "waitid",
    "waitpid",
    "write",
    "writev",
});
static_assert(std::is_sorted(harmless.begin(), harmless.end()));

/// Functions of a program's own allocator, independent of its implementation.
constexpr std::array allocating = std::to_array<std::string_view>({
    "aligned_alloc",
    "calloc",
    "cfree",
    "free",
    "malloc",
    "malloc_usable_size",
    "memalign",
    "posix_memalign",
    "pvalloc",
    "realloc",
    "reallocarray",
    "sdallocx",
    "mallocx",
    "rallocx",
    "xallocx",
    "dallocx",
    "valloc",
});

bool allocates(std::string_view name) {
  return std::find(allocating.begin(), allocating.end(), name) != allocating.end() || name.starts_with("_Znw") ||
         name.starts_with("_Zna") || name.starts_with("_Zdl") || name.starts_with("_Zda");
}

/// True for libc's functions below a thread's own functions: two at most.
bool begins_thread(std::span<const StackFunction> run) {
  constexpr std::size_t most = 2;
  return run.size() <= most && (run.back().outermost || run.back().name == "__libc_start_main");
}

/// Checks one function that is not libc's. `rest`: the functions that have led to it.
std::string why_not(const StackFunction& function, bool innermost, std::span<const StackFunction> rest) {
  if (!function.described) {
    return "it has functions on its stack that nothing describes";
  }
  if (function.signal_frame) {
    return "it is in a signal handler";
  }
  if (function.owner == CodeOwner::loader) {
    return "it is in the dynamic loader";
  }
  // Each thread that is made while we observe has one function of ours below its own.
  if (function.owner == CodeOwner::collector &&
      (innermost || rest.empty() || rest.front().owner != CodeOwner::libc || !begins_thread(rest))) {
    return "it is in the collector's library";
  }
  return allocates(function.name) ? "it is allocating memory" : std::string();
}

/// Checks consecutive functions of libc.
std::string why_not_in_libc(std::span<const StackFunction> run, bool innermost) {
  for (const StackFunction& function : run) {
    if (!function.described || function.signal_frame) {
      return function.signal_frame ? "it is in a signal handler"
                                   : "it has functions on its stack that nothing describes";
    }
  }
  const std::string& entered = run.back().name;
  if (!innermost && begins_thread(run)) {
    return {};
  }
  const bool waits = innermost && std::binary_search(harmless.begin(), harmless.end(), std::string_view(entered));
  return waits ? std::string() : "it is in the C library" + (entered.empty() ? std::string() : " (" + entered + ")");
}

}  // namespace

std::string why_no_call(std::span<const StackFunction> stack) {
  if (stack.empty() || !stack.back().outermost) {
    return "its stack cannot be read to its end";
  }
  for (std::size_t at = 0; at < stack.size();) {
    std::size_t end = at + 1;
    std::string why;
    if (stack[at].owner == CodeOwner::libc) {
      while (end < stack.size() && stack[end].owner == CodeOwner::libc) {
        ++end;
      }
      why = why_not_in_libc(stack.subspan(at, end - at), at == 0);
    } else {
      why = why_not(stack[at], at == 0, stack.subspan(end));
    }
    if (!why.empty()) {
      return why;
    }
    at = end;
  }
  return {};
}

}  // namespace crosstalk::injector
