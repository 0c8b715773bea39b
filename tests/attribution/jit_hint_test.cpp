// SPDX-License-Identifier: Apache-2.0
#include "attribution/jit_hint.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::attribution::jit_hint_test {
namespace {

std::vector<profile::ProcessRow> processes(const char* executable) {
  profile::ProcessRow process;
  process.executable = executable;
  return {process};
}

Communication nameless(double cost_s, double other_s) {
  Communication c;
  LineRow row;
  row.function = "[unknown]";
  row.cost_s = cost_s;
  c.lines.push_back(row);
  row.function = "main";
  row.cost_s = other_s;
  c.lines.push_back(row);
  row.role = Role::producer;
  row.cost_s = 100;
  c.lines.push_back(row);
  return c;
}

TEST(JitHint, SaysHowForTheRunTimeSystemThatRan) {
  const auto hint = jit_hint({{0, 3.0}}, 10, {}, processes("/usr/lib/jvm/java-17/bin/java"), false);
  EXPECT_EQ(hint,
            "30 % of the CPU time is in code without names that lies in no file (most of it in java): its "
            "just-in-time compiler made it. For names, have it write them with jcmd PID Compiler.perfmap while it "
            "runs, or run it with java "
            "-XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit (JDK 17 or later)");
  for (const auto& [program, way] : {std::pair{"/usr/bin/node", "--perf-basic-prof"},
                                     {"/usr/bin/dotnet", "DOTNET_PerfMapEnabled=1"},
                                     {"/opt/mine", "/tmp/perf-PID.map"}}) {
    EXPECT_NE(jit_hint({{0, 3.0}}, 10, {}, processes(program), false).value_or("").find(way), std::string::npos)
        << program;
  }
}

TEST(JitHint, SpeaksOfACompilerOnlyWhereOneIsKnown) {
  const auto of = [](bool some_named) {
    return jit_hint({{0, 3.0}}, 10, {}, processes("/opt/mine"), some_named).value_or("");
  };
  EXPECT_NE(of(false).find("memory that the program filled itself, or a file that was gone"), std::string::npos);
  EXPECT_EQ(of(false).find("compiler made it"), std::string::npos) << of(false);
  EXPECT_NE(of(true).find("Other code of the program's just-in-time compiler has names"), std::string::npos);
}

TEST(JitHint, AdvisesNothingThatWasDone) {
  const auto hint = jit_hint({{0, 3.0}}, 10, {}, processes("/usr/bin/node"), true).value_or("");
  EXPECT_EQ(hint.find("--perf-basic-prof"), std::string::npos) << hint;
  EXPECT_NE(hint.find("compiled after"), std::string::npos) << hint;
}

TEST(JitHint, OnlyWhereItMatters) {
  const auto java = processes("/usr/bin/java");
  EXPECT_FALSE(jit_hint({}, 10, {}, java, false));
  EXPECT_FALSE(jit_hint({{0, 0.4}}, 10, {}, java, false));
  EXPECT_FALSE(jit_hint({{0, 0.4}}, 10, nameless(0.04, 0.96), java, false));
  EXPECT_FALSE(jit_hint({}, 10, nameless(1, 1), java, false)) << "code of a file without symbols";
  const auto of_cost = jit_hint({{0, 0.4}}, 10, nameless(0.2, 0.8), java, false);
  ASSERT_TRUE(of_cost);
  EXPECT_EQ(of_cost->find("20 % of the cost of communication"), 0U) << *of_cost;
}

}  // namespace
}  // namespace crosstalk::attribution::jit_hint_test
