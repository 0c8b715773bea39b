// SPDX-License-Identifier: Apache-2.0
#include "collectors/ptrace_scope.h"

#include "base/number.h"
#include "base/proc_fields.h"

namespace crosstalk::collectors {

std::string ptrace_scope() { return file_text("/proc/sys/kernel/yama/ptrace_scope"); }

std::string scope_advice(const std::string& scope) {
  constexpr unsigned nobody = 3;  // Documentation/admin-guide/LSM/Yama.rst
  const auto value = leading_number<unsigned>(scope).value_or(0);
  if (value == 0) {
    return {};
  }
  const std::string is = "kernel.yama.ptrace_scope is " + std::to_string(value);
  return value >= nobody ? is + ", which forbids it to everybody until the next boot"
                         : is + "; sudo sysctl kernel.yama.ptrace_scope=0, or record as root";
}

}  // namespace crosstalk::collectors
