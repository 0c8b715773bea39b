// SPDX-License-Identifier: Apache-2.0
// Names variables on threads' stacks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// A variable of a call in progress.
struct OnStack {
  std::uint32_t file = 0;  // with the type's debug information
  symbolizer::StackVariable variable;
  std::string function;  // the function of the local variable
};

/// The frames of a thread are known only at the times of its stack copies. Memory above the stack pointer of the last
/// copy before an access was in use then, and most likely still is: the frames with shared data are those that wait for
/// the sharing threads. Else uses the first copy after the access.
class StackVariables {
 public:
  /// Both must outlive this.
  StackVariables(const ProgramView& view, const StackTable& stacks) : view_(view), stacks_(stacks) {}

  /// The variable at `address` on the stack of `owner`; nullopt if no copy tells.
  [[nodiscard]] std::optional<OnStack> find(ThreadId owner, std::uint64_t time_ns, std::uint64_t address);

 private:
  using Seen = const StackTable::Seen*;
  [[nodiscard]] const std::vector<Seen>& in_order(ThreadId owner);
  [[nodiscard]] std::optional<OnStack> in_copy(ThreadId owner, const StackTable::Seen& seen,
                                               std::uint64_t address) const;

  const ProgramView& view_;
  const StackTable& stacks_;
  std::map<ThreadId, std::vector<Seen>> in_order_;
};

}  // namespace crosstalk::attribution
