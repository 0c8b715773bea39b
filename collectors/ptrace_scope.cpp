// SPDX-License-Identifier: Apache-2.0
#include "collectors/ptrace_scope.h"

#include <charconv>
#include <fstream>
#include <sstream>

namespace crosstalk::collectors {

std::string ptrace_scope() {
  std::ifstream in("/proc/sys/kernel/yama/ptrace_scope");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string scope_advice(const std::string& scope) {
  constexpr unsigned nobody = 3;  // Documentation/admin-guide/LSM/Yama.rst
  unsigned value = 0;
  std::from_chars(scope.data(), scope.data() + scope.size(), value);
  if (value == 0) {
    return {};
  }
  const std::string is = "kernel.yama.ptrace_scope is " + std::to_string(value);
  return value >= nobody ? is + ", which forbids it to everybody until the next boot"
                         : is + "; sudo sysctl kernel.yama.ptrace_scope=0, or record as root";
}

}  // namespace crosstalk::collectors
