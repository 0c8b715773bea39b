// SPDX-License-Identifier: Apache-2.0
// What Yama, a security module of the kernel, allows of other processes: their memory is read, and they are traced, by
// the same right.
#pragma once

#include <string>

namespace crosstalk::collectors {

/// What this machine says: the text of kernel.yama.ptrace_scope, "1\n"; empty: it has no Yama.
[[nodiscard]] std::string ptrace_scope();
/// What stands in the way, and what can be done about it: of the text of kernel.yama.ptrace_scope. Empty: nothing does.
[[nodiscard]] std::string scope_advice(const std::string& scope);

}  // namespace crosstalk::collectors
