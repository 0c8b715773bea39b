// SPDX-License-Identifier: Apache-2.0
// Interposes exec and spawn. Children are observed if wanted, whatever environment the target gives them. They are not
// observed if unwanted, or if they could not run with us (child_environment.h).
//
// An exec may come from a vfork child, which runs on its parent's memory and stack: nothing here allocates,
// takes a lock or writes to static memory. system() and popen() spawn inside libc with `environ` as it is.
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/contract/stand_ins.h"
#include "collectors/in_target/interpose/child_environment.h"
#include "collectors/in_target/interpose/exec_file.h"
#include "collectors/in_target/interpose/revealed_environment.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/signals/signal_wishes.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

/// A process that is not the observed one: its vfork child, or a forked child that is not followed. Without a
/// system call when nothing is observed: a seccomp filter may not allow one.
bool in_other_process() { return !observing() || kernel_process_id() != attached_pid(); }

/// Decides whether the next program can be observed, and how its environment must change.
class Prospect {
 public:
  Prospect(const ExecFile& file, bool for_child) : change_(wanted_change(for_child)) {
    const profile::SessionConfig* config = session_config();
    if (config == nullptr || !knows_environment() || change_ == Change::strip || !may_make_system_calls()) {
      return;
    }
    if (change_ == Change::add && !next_program_has_room()) {
      change_ = Change::strip;
      return;
    }
    unobservable_ = unobservable(file, program_);
    if (!unobservable_ && change_ == Change::add && !arena_in_reach()) {
      unobservable_ = true;
      program_.reason = profile::Unobserved::out_of_reach;
      if (program_.program[0] == 0) {
        set_program(program_, file.path);
      }
    }
    if (unobservable_ && must_not_get_us(program_.reason)) {
      change_ = Change::strip;
    }
  }

  [[nodiscard]] Change change() const { return change_; }
  /// Says that the calling process is about to execute it, or (`failed`) could not.
  void tell(bool failed) const {
    if (unobservable_) {
      tell_unobserved(program_, kernel_process_id(), failed);
    }
  }
  void tell_of_child(std::int32_t pid) const {
    if (unobservable_) {
      tell_unobserved(program_, pid, false);
    }
  }

 private:
  Change change_;
  bool unobservable_ = false;
  UnobservedProgram program_;
};

/// The core is quiet, and the target's wishes are in the kernel, while an exec is tried.
template <class Call>
int run_exec(const ExecFile& file, Strings environment, Call call) {
  if (session_config() == nullptr) {
    return call(environment);
  }
  const bool other_process = in_other_process();
  const bool quiesce = !other_process;
  // A thread that has raised the limit dies in the exec, and would not put it back.
  const SteadyLimit steady(may_make_system_calls());
  const Prospect prospect(file, other_process);
  const int result = with_environment(environment, prospect.change(), [&](Strings changed) {
    if (quiesce) {
      before_exec();
    }
    prospect.tell(false);
    const WishesInKernel wishes;
    return call(changed);
  });
  const SavedErrno saved;
  prospect.tell(true);
  if (quiesce) {
    exec_failed();
  }
  return result;
}

/// posix_spawn, whose child is known only once it runs.
template <class Call>
int run_spawn(const ExecFile& file, pid_t* pid, Strings environment, Call call) {
  const Prospect prospect(file, true);
  pid_t child = 0;
  const int result =
      with_environment(environment, prospect.change(), [&](Strings changed) { return call(&child, changed); });
  if (result == 0) {
    prospect.tell_of_child(child);
    if (pid != nullptr) {
      *pid = child;
    }
  }
  return result;
}

CROSSTALK_REAL constinit RealFunction<int(const char*, Strings, Strings)> real_execve("execve");
CROSSTALK_REAL constinit RealFunction<int(const char*, Strings, Strings)> real_execvpe("execvpe");
CROSSTALK_REAL constinit RealFunction<int(int, Strings, Strings)> real_fexecve("fexecve");
CROSSTALK_REAL constinit RealFunction<int(int, const char*, Strings, Strings, int)> real_execveat("execveat");

using FileActions = const posix_spawn_file_actions_t*;
using Attributes = const posix_spawnattr_t*;
using Spawn = int(pid_t*, const char*, FileActions, Attributes, Strings, Strings);
CROSSTALK_REAL constinit RealFunction<Spawn> real_posix_spawn("posix_spawn");
CROSSTALK_REAL constinit RealFunction<Spawn> real_posix_spawnp("posix_spawnp");

int exec_path(const char* path, Strings arguments, Strings environment) {
  return run_exec({.path = path}, environment, [&](Strings changed) { return real_execve(path, arguments, changed); });
}

int exec_search(const char* file, Strings arguments, Strings environment) {
  return run_exec({.path = file, .search = true}, environment,
                  [&](Strings changed) { return real_execvpe(file, arguments, changed); });
}

/// Counts the arguments of an execl*: `first`, then those of `list` up to the null. Leaves `list` behind the null.
std::size_t count_arguments(const char* first, va_list list) {
  std::size_t count = 0;
  for (const char* argument = first; argument != nullptr; argument = va_arg(list, const char*)) {
    ++count;
  }
  return count;
}

void copy_arguments(const char* first, va_list list, char** out) {
  for (const char* argument = first; argument != nullptr; argument = va_arg(list, const char*)) {
    *out++ = const_cast<char*>(argument);  // NOLINT: exec takes char* const* and writes to none
  }
  *out = nullptr;
}

}  // namespace

void prepare_exec_wrappers() {
  real_execve.prepare();
  real_execvpe.prepare();
}

// -------------------------------------------------------------------------------------- exec

CROSSTALK_INTERPOSE(int, wrap_execve, "execve", (const char*, Strings, Strings));
int wrap_execve(const char* path, Strings arguments, Strings environment) {
  return exec_path(path, arguments, environment);
}

CROSSTALK_INTERPOSE(int, wrap_execv, "execv", (const char*, Strings));
int wrap_execv(const char* path, Strings arguments) { return exec_path(path, arguments, environ); }

CROSSTALK_INTERPOSE(int, wrap_execvp, "execvp", (const char*, Strings));
int wrap_execvp(const char* file, Strings arguments) { return exec_search(file, arguments, environ); }

CROSSTALK_INTERPOSE(int, wrap_execvpe, "execvpe", (const char*, Strings, Strings));
int wrap_execvpe(const char* file, Strings arguments, Strings environment) {
  return exec_search(file, arguments, environment);
}

CROSSTALK_INTERPOSE(int, wrap_fexecve, "fexecve", (int, Strings, Strings));
int wrap_fexecve(int fd, Strings arguments, Strings environment) {
  return run_exec({.descriptor = fd}, environment,
                  [&](Strings changed) { return real_fexecve(fd, arguments, changed); });
}

CROSSTALK_INTERPOSE(int, wrap_execveat, "execveat", (int, const char*, Strings, Strings, int));
int wrap_execveat(int directory, const char* path, Strings arguments, Strings environment, int flags) {
  if (real_execveat.get() == nullptr) {  // before glibc 2.34
    errno = ENOSYS;
    return -1;
  }
  return run_exec({.path = path, .descriptor = directory}, environment,
                  [&](Strings changed) { return real_execveat(directory, path, arguments, changed, flags); });
}

CROSSTALK_INTERPOSE(int, wrap_execl, "execl", (const char*, const char*, ...));
int wrap_execl(const char* path, const char* first, ...) {
  va_list list;
  va_start(list, first);
  auto** arguments = static_cast<char**>(__builtin_alloca((count_arguments(first, list) + 1) * sizeof(char*)));
  va_end(list);
  va_start(list, first);
  copy_arguments(first, list, arguments);
  va_end(list);
  return exec_path(path, arguments, environ);
}

CROSSTALK_INTERPOSE(int, wrap_execlp, "execlp", (const char*, const char*, ...));
int wrap_execlp(const char* file, const char* first, ...) {
  va_list list;
  va_start(list, first);
  auto** arguments = static_cast<char**>(__builtin_alloca((count_arguments(first, list) + 1) * sizeof(char*)));
  va_end(list);
  va_start(list, first);
  copy_arguments(first, list, arguments);
  va_end(list);
  return exec_search(file, arguments, environ);
}

CROSSTALK_INTERPOSE(int, wrap_execle, "execle", (const char*, const char*, ...));
int wrap_execle(const char* path, const char* first, ...) {
  va_list list;
  va_start(list, first);
  auto** arguments = static_cast<char**>(__builtin_alloca((count_arguments(first, list) + 1) * sizeof(char*)));
  va_end(list);
  va_start(list, first);
  copy_arguments(first, list, arguments);
  const Strings environment = va_arg(list, Strings);
  va_end(list);
  return exec_path(path, arguments, environment);
}

// ------------------------------------------------------------------------------------- spawn

CROSSTALK_INTERPOSE(int, wrap_posix_spawn, "posix_spawn",
                    (pid_t*, const char*, FileActions, Attributes, Strings, Strings));
int wrap_posix_spawn(pid_t* pid, const char* path, FileActions actions, Attributes attributes, Strings arguments,
                     Strings environment) {
  const SteadyLimit steady(may_make_system_calls());
  return run_spawn({.path = path}, pid, environment, [&](pid_t* child, Strings changed) {
    return real_posix_spawn(child, path, actions, attributes, arguments, changed);
  });
}

CROSSTALK_INTERPOSE(int, wrap_posix_spawnp, "posix_spawnp",
                    (pid_t*, const char*, FileActions, Attributes, Strings, Strings));
int wrap_posix_spawnp(pid_t* pid, const char* file, FileActions actions, Attributes attributes, Strings arguments,
                      Strings environment) {
  const SteadyLimit steady(may_make_system_calls());
  return run_spawn({.path = file, .search = true}, pid, environment, [&](pid_t* child, Strings changed) {
    return real_posix_spawnp(child, file, actions, attributes, arguments, changed);
  });
}

// ------------------------------------------------------------------- what libc spawns by itself

namespace {
CROSSTALK_REAL constinit RealFunction<int(const char*)> real_system("system");
CROSSTALK_REAL constinit RealFunction<FILE*(const char*, const char*)> real_popen("popen");
}  // namespace

CROSSTALK_INTERPOSE(int, wrap_system, "system", (const char* line));
int wrap_system(const char* line) {
  if (may_make_system_calls()) {
    leave_limit_alone();
  }
  const RevealedEnvironment revealed;
  return real_system(line);
}

CROSSTALK_INTERPOSE(FILE*, wrap_popen, "popen", (const char* line, const char* mode));
FILE* wrap_popen(const char* line, const char* mode) {
  const SteadyLimit steady(may_make_system_calls());
  const RevealedEnvironment revealed;
  return real_popen(line, mode);
}

}  // namespace crosstalk::in_target
