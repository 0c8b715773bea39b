// SPDX-License-Identifier: Apache-2.0
// The limits that Yama, a security module of the kernel, sets on reading other processes' memory and tracing them: both
// need the same right.
#pragma once

#include <string>

namespace crosstalk::collectors {

/// Returns this machine's kernel.yama.ptrace_scope, "1\n"; empty: it has no Yama.
[[nodiscard]] std::string ptrace_scope();
/// Returns the obstacle and its remedy, from the text of kernel.yama.ptrace_scope. Empty: there is none.
[[nodiscard]] std::string scope_advice(const std::string& scope);

}  // namespace crosstalk::collectors
