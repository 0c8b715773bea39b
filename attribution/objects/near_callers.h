// SPDX-License-Identifier: Apache-2.0
// Finds the callers of a run-time library in the lowest words of a thread's stack, which most traps have: functions of
// libraries keep little there, so that the return address into the program is among them.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

class NearCallers {
 public:
  /// Both must outlive this.
  NearCallers(const ProgramView& view, StackTable& stacks) : view_(view), stacks_(stacks) {}

  /// The beginning of the trap's stack, up to the program's own code, entered into the table of stacks. 0 if the
  /// instruction is the program's own, if the whole stack was copied, or if the words do not reach so far. `trap` is of
  /// a known thread.
  [[nodiscard]] StackId of(const profile::TrapRow& trap);

 private:
  /// The mappings of a process, and the period in which they do not change.
  struct Mapped {
    std::uint64_t from_ns = 0, to_ns = 0;  // to_ns 0: not known yet
    std::vector<MappedModule> modules;
  };
  [[nodiscard]] bool all_library(Moment moment, std::uint64_t address);
  [[nodiscard]] const std::vector<MappedModule>& mapped(Moment moment);

  const ProgramView& view_;
  StackTable& stacks_;
  std::unordered_map<ModulePlace, bool, ModulePlaceHash> all_library_;
  std::map<ProcessId, Mapped> mapped_;
};

}  // namespace crosstalk::attribution
