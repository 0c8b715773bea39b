// SPDX-License-Identifier: Apache-2.0
#include "daemon/own_limits.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <cstddef>

#include "base/library_limits.h"
#include "base/unique_fd.h"

namespace crosstalk::daemon {
namespace {

constexpr std::size_t least_stack = std::size_t{1} << 20U;
constexpr std::size_t usual_stack = std::size_t{8} << 20U;

struct KnownLimit {
  __rlimit_resource resource;
  rlimit given;
  bool changed;
};
constinit std::array<KnownLimit, 6> limits{{{RLIMIT_STACK, {}, false},
                                            {RLIMIT_FSIZE, {}, false},
                                            {RLIMIT_AS, {}, false},
                                            {RLIMIT_DATA, {}, false},
                                            {RLIMIT_CPU, {}, false},
                                            {RLIMIT_NOFILE, {}, false}}};

struct sigaction old_file_size {};
constinit bool ignores_file_size = false;

/// Raises a limit: to infinity for root, else to the hard limit.
void widen(KnownLimit& limit) {
  if (::getrlimit(limit.resource, &limit.given) != 0) {
    return;
  }
  constexpr rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  const rlimit most{limit.given.rlim_max, limit.given.rlim_max};
  const bool any = limit.given.rlim_cur != RLIM_INFINITY;
  limit.changed = any && (::setrlimit(limit.resource, &unlimited) == 0 || ::setrlimit(limit.resource, &most) == 0);
}

rlim_t limit_of(__rlimit_resource resource) {
  rlimit now{};
  return ::getrlimit(resource, &now) == 0 ? now.rlim_cur : RLIM_INFINITY;
}

rlim_t given_limit(__rlimit_resource resource) {
  for (const KnownLimit& limit : limits) {
    if (limit.resource == resource && limit.changed) {
      return limit.given.rlim_cur;
    }
  }
  return limit_of(resource);
}

/// Before main(), libc took the stack limit as the stack size of threads.
void give_threads_stacks() {
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  if (::pthread_getattr_default_np(&attributes) != 0) {
    return;
  }
  if (::pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < least_stack &&
      ::pthread_attr_setstacksize(&attributes, usual_stack) == 0) {
    ::pthread_setattr_default_np(&attributes);
  }
  ::pthread_attr_destroy(&attributes);
}

// Arguments and result of the function on the other stack: makecontext() passes only integers.
struct {
  int (*run)(int, char**);
  int count;
  char** words;
  int result;
} constinit task{};

void run_task() { task.result = task.run(task.count, task.words); }

}  // namespace

void widen_own_limits() {
  for (KnownLimit& limit : limits) {
    widen(limit);
  }
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  ignores_file_size = ::sigaction(SIGXFSZ, &ignore, &old_file_size) == 0;
  give_threads_stacks();
}

void restore_limits() {
  for (const KnownLimit& limit : limits) {
    if (limit.changed) {
      ::setrlimit(limit.resource, &limit.given);
    }
  }
  if (ignores_file_size) {
    ::sigaction(SIGXFSZ, &old_file_size, nullptr);
  }
}

int with_enough_stack(int (*run)(int, char**), int count, char** words) {
  if (limit_of(RLIMIT_STACK) >= least_stack) {
    return run(count, words);
  }
  void* const stack = ::mmap(nullptr, usual_stack, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  static ucontext_t here;  // static, because they are large and the stack is small
  static ucontext_t there;
  if (stack == MAP_FAILED || ::getcontext(&there) != 0) {
    return run(count, words);
  }
  there.uc_stack.ss_sp = stack;
  there.uc_stack.ss_size = usual_stack;
  there.uc_link = &here;
  task = {run, count, words, 0};
  ::makecontext(&there, run_task, 0);
  ::swapcontext(&here, &there);
  return task.result;
}

std::uint64_t largest_file() { return limit_of(RLIMIT_FSIZE); }

std::string limit_against_library() {
  if (given_limit(RLIMIT_STACK) < least_stack_limit) {
    return "its limit of the stack (ulimit -s) has no room for a library";
  }
  if (given_limit(RLIMIT_AS) < least_space_limit || given_limit(RLIMIT_DATA) < least_data_limit) {
    return "its limit of memory (ulimit -v, -d) has no room for a library";
  }
  return given_limit(RLIMIT_RTTIME) < least_real_time_limit
             ? "its limit of real-time CPU time (ulimit -R) allows no timer"
             : "";
}

bool files_are_limited() {
  constexpr std::uint64_t of_an_empty_profile = std::uint64_t{1} << 20U;
  const UniqueFd another(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  const UniqueFd one_more(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  const UniqueFd third(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  return largest_file() < of_an_empty_profile || !third.valid();
}

}  // namespace crosstalk::daemon
