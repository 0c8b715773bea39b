// SPDX-License-Identifier: Apache-2.0
// Tells if a process still executes the program that it executed at first. An action that fails while the process ends,
// or executes another program, fails for that reason.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/unique_fd.h"

namespace crosstalk::injector {

class ExecutedProgram {
 public:
  explicit ExecutedProgram(pid_t pid);
  /// Returns an empty text if it executes the same program as when this was made, else its change: "it has ended" and
  /// the like. Waits for some milliseconds if it is about to end.
  [[nodiscard]] std::string what_became_of_it() const;

 private:
  pid_t pid_;
  // The kernel's data for the program's start (proc(5), auxv). It contains addresses, which differ in each execution if
  // they are randomised.
  std::string start_;
  // The process's first memory: an open descriptor stays with it (mem_open() of Linux), whatever the process executes,
  // and whether or not addresses are randomised.
  UniqueFd memory_;
};

}  // namespace crosstalk::injector
