// SPDX-License-Identifier: Apache-2.0
// Hides from the target that we raise the limit of descriptors for a moment (sys/hidden_numbers.h). Forks wait by
// pthread_atfork(), spawned children in exec.cpp. A child made another way (vfork, _Fork, clone) may inherit the raised
// limit; it is put back when the child asks for it, or executes a program.
#include <sys/resource.h>
#include <sys/types.h>

#include <cerrno>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/libc/real_functions.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

CROSSTALK_REAL constinit RealFunction<int(int, rlimit*)> real_getrlimit("getrlimit");
CROSSTALK_REAL constinit RealFunction<int(int, const rlimit*)> real_setrlimit("setrlimit");
CROSSTALK_REAL constinit RealFunction<int(pid_t, int, const rlimit*, rlimit*)> real_prlimit("prlimit");

static_assert(sizeof(rlimit) == sizeof(rlimit64));  // so both names of each function are the same

template <class Call>
auto ask(int resource, Call call) {
  if (resource != RLIMIT_NOFILE) {
    return call();
  }
  const SteadyLimit steady(may_make_system_calls());
  return call();
}

rlim_t soft_limit() {
  rlimit64 limit{};
  system_call(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  return limit.rlim_cur;
}

// Above a higher limit our numbers are others.
template <class Call>
auto change(int resource, Call call) {
  if (resource != RLIMIT_NOFILE || !may_make_system_calls()) {
    return call();
  }
  const SteadyLimit steady(true);
  const rlim_t before = soft_limit();
  const auto result = call();
  const SavedErrno saved;
  if (soft_limit() > before) {
    on_limit_raised();
  }
  return result;
}

}  // namespace

CROSSTALK_INTERPOSE(int, wrap_getrlimit, "getrlimit", (int, rlimit*));
int wrap_getrlimit(int resource, rlimit* limit) {
  return ask(resource, [&] { return real_getrlimit(resource, limit); });
}

CROSSTALK_INTERPOSE(int, wrap_getrlimit64, "getrlimit64", (int, rlimit*));
int wrap_getrlimit64(int resource, rlimit* limit) { return wrap_getrlimit(resource, limit); }

CROSSTALK_INTERPOSE(int, wrap_setrlimit, "setrlimit", (int, const rlimit*));
int wrap_setrlimit(int resource, const rlimit* limit) {
  return change(resource, [&] { return real_setrlimit(resource, limit); });
}

CROSSTALK_INTERPOSE(int, wrap_setrlimit64, "setrlimit64", (int, const rlimit*));
int wrap_setrlimit64(int resource, const rlimit* limit) { return wrap_setrlimit(resource, limit); }

CROSSTALK_INTERPOSE(int, wrap_prlimit, "prlimit", (pid_t, int, const rlimit*, rlimit*));
int wrap_prlimit(pid_t pid, int resource, const rlimit* limit, rlimit* old_limit) {
  const auto call = [&] { return real_prlimit(pid, resource, limit, old_limit); };
  return limit != nullptr ? change(resource, call) : ask(resource, call);
}

CROSSTALK_INTERPOSE(int, wrap_prlimit64, "prlimit64", (pid_t, int, const rlimit*, rlimit*));
int wrap_prlimit64(pid_t pid, int resource, const rlimit* limit, rlimit* old_limit) {
  return wrap_prlimit(pid, resource, limit, old_limit);
}

}  // namespace crosstalk::in_target
