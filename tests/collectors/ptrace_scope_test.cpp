// SPDX-License-Identifier: Apache-2.0
#include "collectors/ptrace_scope.h"

#include <gtest/gtest.h>

namespace crosstalk::collectors::ptrace_scope_test {
namespace {

TEST(PtraceScope, Advice) {
  EXPECT_EQ(scope_advice(""), "");
  EXPECT_EQ(scope_advice("0\n"), "");
  EXPECT_NE(scope_advice("1\n").find("ptrace_scope is 1; sudo sysctl kernel.yama.ptrace_scope=0"), std::string::npos);
  EXPECT_NE(scope_advice("2\n").find("record as root"), std::string::npos);
  EXPECT_EQ(scope_advice("3\n").find("sysctl kernel.yama"), std::string::npos) << "it cannot be changed";
  EXPECT_EQ(scope_advice("3\n").find("root"), std::string::npos) << "root may not, either";
}

}  // namespace
}  // namespace crosstalk::collectors::ptrace_scope_test
