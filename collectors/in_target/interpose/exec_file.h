// SPDX-License-Identifier: Apache-2.0
// The file that an exec or a spawn is about to execute, and whether it can be observed. May run in a vfork child:
// nothing here allocates, takes a lock or writes to static memory.
#pragma once

#include <fcntl.h>

#include "collectors/in_target/contract/core.h"

namespace crosstalk::in_target {

/// A file as the functions of the exec family name it.
struct ExecFile {
  const char* path = "";      // empty: the file that `descriptor` has open
  bool search = false;        // a path without a slash is looked for in PATH
  int descriptor = AT_FDCWD;  // start of relative paths
};

/// True when the program cannot be observed; `program` then says which it is and why. False also when that is not
/// known: no such file, or one that cannot be read.
bool unobservable(const ExecFile& file, UnobservedProgram& program);

/// Cuts a path that is too long.
void set_program(UnobservedProgram& program, const char* path);

/// True if our library would keep the program from starting, or change its start. Other programs (static ones,
/// set-user-ID ones) ignore the library, and pass it on to programs that they execute.
bool must_not_get_us(profile::Unobserved reason);

}  // namespace crosstalk::in_target
