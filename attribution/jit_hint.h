// SPDX-License-Identifier: Apache-2.0
// Tells how to get names for code of just-in-time compilers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "attribution/model/model.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// One line, if code without a file and a name takes more than 5 % of the CPU time or of the cost of communication. It
/// names the option of the run-time system that the process runs, which it knows by the program's name. `fileless_s`:
/// CPU time in such code, by process. `some_named`: a just-in-time compiler has left names of other code.
[[nodiscard]] std::optional<std::string> jit_hint(const std::map<std::uint32_t, double>& fileless_s, double cpu_s,
                                                  const Communication& communication,
                                                  std::span<const profile::ProcessRow> processes, bool some_named);

}  // namespace crosstalk::attribution
