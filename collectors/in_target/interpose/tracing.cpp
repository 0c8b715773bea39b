// SPDX-License-Identifier: Apache-2.0
// A thread that is traced stops at each signal until its tracer lets it go on: a program that lets itself be traced is
// left alone.
#include <sys/ptrace.h>

#include <cstdarg>

#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/libc/real_functions.h"

namespace crosstalk::in_target {
namespace {
CROSSTALK_REAL constinit RealFunction<long(int, void*, void*, void*)> real_ptrace("ptrace");
}  // namespace

CROSSTALK_INTERPOSE(long, wrap_ptrace, "ptrace", (int request, ...));
long wrap_ptrace(int request, ...) {
  void* argument[3];  // process, address, data
  va_list list;
  va_start(list, request);
  for (void*& a : argument) {
    a = va_arg(list, void*);  // as libc does: arguments that were not given are ignored
  }
  va_end(list);
  if (request == PTRACE_TRACEME) {
    const SavedErrno saved;
    on_traced();
  }
  return real_ptrace(request, argument[0], argument[1], argument[2]);
}

}  // namespace crosstalk::in_target
