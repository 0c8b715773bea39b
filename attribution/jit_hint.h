// SPDX-License-Identifier: Apache-2.0
// How to get names for code that just-in-time compilers made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "attribution/model.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// One line, where code that lies in no file and has no name takes more than 5 % of the CPU time or of the cost of
/// communication. `fileless_s`: CPU time in such code, by process. It names the way of the run-time system that the
/// process runs, by the name of its program. `some_named`: a just-in-time compiler has left names of other code.
[[nodiscard]] std::optional<std::string> jit_hint(const std::map<std::uint32_t, double>& fileless_s, double cpu_s,
                                                  const Communication& communication,
                                                  std::span<const profile::ProcessRow> processes, bool some_named);

}  // namespace crosstalk::attribution
