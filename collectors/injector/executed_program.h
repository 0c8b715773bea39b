// SPDX-License-Identifier: Apache-2.0
// Whether a process is still what it was when it was first looked at. Whatever fails while it ends, or executes another
// program, fails for that reason.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace crosstalk::injector {

class ExecutedProgram {
 public:
  explicit ExecutedProgram(pid_t pid);
  /// Empty: it executes the same program as when this was made. Else what it has done meanwhile: "it has ended" and the
  /// like. Waits for some milliseconds where it is about to end.
  [[nodiscard]] std::string what_became_of_it() const;

 private:
  pid_t pid_;
  // What the kernel has told the program at its start (proc(5), auxv). There are addresses in it, which differ in each
  // execution where they are randomised.
  std::string start_;
  // The memory that the process had at first: an open descriptor stays with that (mem_open() of Linux), whatever the
  // process executes, and whether addresses are randomised or not.
  UniqueFd memory_;
};

}  // namespace crosstalk::injector
