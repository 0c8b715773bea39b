// SPDX-License-Identifier: Apache-2.0
// exec and spawn: children are observed when they should be, whatever the target did to the environment it
// hands them, and are not when they should not, or when they could not live with us.
//
// An exec may come from a vfork child, which runs on its parent's memory and stack: nothing here allocates,
// takes a lock or writes to static memory. The changed environment lives on the stack for the time of the call.
// system() and popen() spawn inside libc with `environ` as it is.
#include <link.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "collectors/in_target/interpose/core_interface.h"
#include "collectors/in_target/interpose/exec_file.h"
#include "collectors/in_target/interpose/interpose.h"
#include "collectors/in_target/interpose/signal_wishes.h"
#include "collectors/in_target/objects/modules.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

using Strings = char* const*;

constexpr char preload_prefix[] = "LD_PRELOAD=";
constexpr std::size_t preload_prefix_bytes = sizeof(preload_prefix) - 1;
constexpr std::size_t entry_limit = 4096;    // an environment with more entries is passed on as it is
constexpr std::size_t preload_limit = 8192;  // bytes of LD_PRELOAD, the same

/// Copied at the start; constant afterwards.
struct Remembered {
  char preload[preload_prefix_bytes + modules::path_limit + 1] = {};  // "LD_PRELOAD=/path/libcrosstalk.so"
  char arena[256] = {};                                               // "CROSSTALK_ARENA=..."
  std::size_t arena_prefix_bytes = 0;
  char cleaned_preload[preload_limit] = {};  // for `environ` without us
  bool known = false;
};
constinit Remembered remembered;

const char* own_path() { return remembered.preload + preload_prefix_bytes; }

bool is_preload(const char* entry) { return strncmp(entry, preload_prefix, preload_prefix_bytes) == 0; }
bool is_arena(const char* entry) { return strncmp(entry, remembered.arena, remembered.arena_prefix_bytes) == 0; }

/// Bytes up to the next separator of a preload list, or its end.
std::size_t item_bytes(const char* item) { return strcspn(item, ": "); }

bool is_own_item(const char* item, std::size_t bytes) {
  return bytes == strlen(own_path()) && memcmp(item, own_path(), bytes) == 0;
}

bool lists_us(const char* preload_entry) {
  for (const char* item = preload_entry + preload_prefix_bytes;;) {
    const std::size_t bytes = item_bytes(item);
    if (is_own_item(item, bytes)) {
      return true;
    }
    if (item[bytes] == 0) {
      return false;
    }
    item += bytes + 1;
  }
}

/// "LD_PRELOAD=us:theirs". `out` holds preload_limit bytes.
char* with_us(const char* preload_entry, char* out) {
  const std::size_t own_bytes = strlen(remembered.preload);
  memcpy(out, remembered.preload, own_bytes);
  out[own_bytes] = ':';
  memcpy(out + own_bytes + 1, preload_entry + preload_prefix_bytes, strlen(preload_entry) - preload_prefix_bytes + 1);
  return out;
}

/// The entry without our item; null when nothing else is in it.
char* without_us(const char* preload_entry, char* out) {
  std::size_t length = preload_prefix_bytes;
  memcpy(out, preload_prefix, preload_prefix_bytes);
  for (const char* item = preload_entry + preload_prefix_bytes;;) {
    const std::size_t bytes = item_bytes(item);
    if (bytes != 0 && !is_own_item(item, bytes)) {
      if (length != preload_prefix_bytes) {
        out[length++] = ':';
      }
      memcpy(out + length, item, bytes);
      length += bytes;
    }
    if (item[bytes] == 0) {
      break;
    }
    item += bytes + 1;
  }
  out[length] = 0;
  return length == preload_prefix_bytes ? nullptr : out;
}

enum class Change { none, add, strip };

/// A process that is not the observed one: its vfork child, or a forked child that is not followed. Without a
/// system call when nothing is observed: a seccomp filter may not allow one.
bool in_other_process() { return !observing() || kernel_process_id() != attached_pid(); }

Change wanted_change(bool for_child) {
  const profile::SessionConfig* config = session_config();
  if (config == nullptr || !remembered.known) {
    return Change::none;
  }
  // What a confined program executes is confined, too, and its filter may forbid what we would call there.
  if ((for_child && config->follow_children == 0) || confined()) {
    return Change::strip;
  }
  return observing() ? Change::add : Change::none;
}

struct Survey {
  std::size_t entries = 0;
  const char* preload = nullptr;  // the first, which counts
  const char* arena = nullptr;
};

Survey survey(Strings environment) {
  Survey s;
  for (; environment != nullptr && environment[s.entries] != nullptr; ++s.entries) {
    const char* entry = environment[s.entries];
    if (s.preload == nullptr && is_preload(entry)) {
      s.preload = entry;
    } else if (s.arena == nullptr && is_arena(entry)) {
      s.arena = entry;
    }
  }
  return s;
}

bool needs(Change change, const Survey& s) {
  const bool listed = s.preload != nullptr && lists_us(s.preload);
  switch (change) {
    case Change::add:
      return !listed || s.arena == nullptr || strcmp(s.arena, remembered.arena) != 0;
    case Change::strip:
      return listed || s.arena != nullptr;
    case Change::none:
      break;
  }
  return false;
}

/// `out` has room for two more entries than `environment`, and the null.
void rewrite(Strings environment, const Survey& s, Change change, char** out, char* text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < s.entries; ++i) {
    char* entry = environment[i];
    if (is_arena(entry)) {
      continue;
    }
    if (entry == s.preload && change == Change::strip) {
      entry = without_us(entry, text);
    } else if (entry == s.preload && !lists_us(entry)) {
      entry = with_us(entry, text);
    }
    if (entry != nullptr) {
      out[count++] = entry;
    }
  }
  if (change == Change::add) {
    if (s.preload == nullptr) {
      out[count++] = remembered.preload;
    }
    out[count++] = remembered.arena;
  }
  out[count] = nullptr;
}

/// Calls `call` with the environment that the next program is to get.
template <class Call>
int with_environment(Strings environment, Change change, Call call) {
  if (change == Change::none) {
    return call(environment);
  }
  const Survey s = survey(environment);
  const std::size_t text_bytes = s.preload == nullptr ? 0 : strlen(s.preload) + strlen(remembered.preload) + 2;
  if (!needs(change, s) || s.entries > entry_limit || text_bytes > preload_limit) {
    return call(environment);
  }
  auto** out = static_cast<char**>(__builtin_alloca((s.entries + 3) * sizeof(char*)));
  auto* text = static_cast<char*>(__builtin_alloca(text_bytes + 1));
  rewrite(environment, s, change, out, text);
  return call(out);
}

/// What stands against observing what is about to be executed, and what that makes of its environment.
class Prospect {
 public:
  Prospect(const ExecFile& file, bool for_child) : change_(wanted_change(for_child)) {
    const profile::SessionConfig* config = session_config();
    if (config == nullptr || !remembered.known || change_ == Change::strip || !may_make_system_calls()) {
      return;
    }
    unobservable_ = unobservable(file, program_);
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

constinit RealFunction<int(const char*, Strings, Strings)> real_execve("execve");
constinit RealFunction<int(const char*, Strings, Strings)> real_execvpe("execvpe");
constinit RealFunction<int(int, Strings, Strings)> real_fexecve("fexecve");
constinit RealFunction<int(int, const char*, Strings, Strings, int)> real_execveat("execveat");

using FileActions = const posix_spawn_file_actions_t*;
using Attributes = const posix_spawnattr_t*;
using Spawn = int(pid_t*, const char*, FileActions, Attributes, Strings, Strings);
constinit RealFunction<Spawn> real_posix_spawn("posix_spawn");
constinit RealFunction<Spawn> real_posix_spawnp("posix_spawnp");

int exec_path(const char* path, Strings arguments, Strings environment) {
  return run_exec({.path = path}, environment, [&](Strings changed) { return real_execve(path, arguments, changed); });
}

int exec_search(const char* file, Strings arguments, Strings environment) {
  return run_exec({.path = file, .search = true}, environment,
                  [&](Strings changed) { return real_execvpe(file, arguments, changed); });
}

/// The arguments of an execl*: `first`, then those of `list` up to the null. Leaves `list` behind the null.
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

/// Removes us from `environ`, for children that libc starts by itself.
void clean_environ() {
  char** out = environ;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    char* kept = *entry;
    if (is_arena(kept)) {
      continue;
    }
    if (is_preload(kept) && strlen(kept) < preload_limit && lists_us(kept)) {
      kept = without_us(kept, remembered.cleaned_preload);
    }
    if (kept != nullptr) {
      *out++ = kept;
    }
  }
  *out = nullptr;
}

struct OwnPath {
  char* out;
  std::size_t bytes = 0;
};

int find_own_path(dl_phdr_info* module, std::size_t /*bytes*/, void* data) {
  if (module->dlpi_addr != own_bias()) {
    return 0;
  }
  auto& path = *static_cast<OwnPath*>(data);
  const std::size_t length = module->dlpi_name == nullptr ? 0 : strlen(module->dlpi_name);
  if (length != 0 && module->dlpi_name[0] == '/' && length < modules::path_limit) {
    memcpy(path.out, module->dlpi_name, length);
    path.bytes = length;
  } else {
    path.bytes = modules::mapped_path(own_bias(), path.out, modules::path_limit - 1);
  }
  return 1;
}

}  // namespace

void remember_environment() {
  const char* value = ::getenv(profile::arena_variable);
  const std::size_t name_bytes = strlen(profile::arena_variable);
  if (value == nullptr || name_bytes + strlen(value) + 2 > sizeof(remembered.arena)) {
    return;
  }
  memcpy(remembered.arena, profile::arena_variable, name_bytes);
  remembered.arena[name_bytes] = '=';
  remembered.arena_prefix_bytes = name_bytes + 1;
  memcpy(remembered.arena + name_bytes + 1, value, strlen(value) + 1);

  memcpy(remembered.preload, preload_prefix, preload_prefix_bytes);
  OwnPath path{remembered.preload + preload_prefix_bytes};
  ::dl_iterate_phdr(find_own_path, &path);
  remembered.preload[preload_prefix_bytes + path.bytes] = 0;
  remembered.known = path.bytes != 0;
  real_execve.prepare();
  real_execvpe.prepare();
  const profile::SessionConfig* config = session_config();
  if (remembered.known && config != nullptr && config->follow_children == 0) {
    clean_environ();
  }
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
  const SteadyLimit steady;
  return run_spawn({.path = path}, pid, environment, [&](pid_t* child, Strings changed) {
    return real_posix_spawn(child, path, actions, attributes, arguments, changed);
  });
}

CROSSTALK_INTERPOSE(int, wrap_posix_spawnp, "posix_spawnp",
                    (pid_t*, const char*, FileActions, Attributes, Strings, Strings));
int wrap_posix_spawnp(pid_t* pid, const char* file, FileActions actions, Attributes attributes, Strings arguments,
                      Strings environment) {
  const SteadyLimit steady;
  return run_spawn({.path = file, .search = true}, pid, environment, [&](pid_t* child, Strings changed) {
    return real_posix_spawnp(child, file, actions, attributes, arguments, changed);
  });
}

}  // namespace crosstalk::in_target
