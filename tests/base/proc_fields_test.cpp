// SPDX-License-Identifier: Apache-2.0
#include "base/proc_fields.h"

#include <gtest/gtest.h>

#include <string>

namespace crosstalk::proc_fields_test {
namespace {

TEST(ProcField, FindsWholeNamesOnly) {
  const char* const status = "Name:\tcat\nSeccomp:\t2\nSeccomp_filters:\t1\nRssAnon:\t    1234 kB\n";
  EXPECT_EQ(proc_field(status, "Name"), "cat");
  EXPECT_EQ(proc_field(status, "Seccomp"), "2");
  EXPECT_EQ(proc_field(status, "Seccomp_filters"), "1");
  EXPECT_EQ(proc_field(status, "RssAnon"), "1234 kB");
  EXPECT_EQ(proc_field(status, "Sec"), std::nullopt);
  EXPECT_EQ(proc_field(status, "cat"), std::nullopt);
  EXPECT_EQ(proc_field("", "Name"), std::nullopt);
}

TEST(ProcField, IsOfTheFirstProcessor) {
  const char* const cpuinfo =
      "processor\t: 0\nmodel\t\t: 17\nmodel name\t: A: B \nflags\t\t: fpu ht\npower management:\n\n"
      "processor\t: 1\nmodel\t\t: 18\nmodel name\t: C\nbugs\t: x";
  EXPECT_EQ(proc_field(cpuinfo, "processor"), "0");
  EXPECT_EQ(proc_field(cpuinfo, "model"), "17");
  EXPECT_EQ(proc_field(cpuinfo, "model name"), "A: B");
  EXPECT_EQ(proc_field(cpuinfo, "power management"), "");
  EXPECT_EQ(proc_field(cpuinfo, "bugs"), "x") << "the last line has no end";
  EXPECT_EQ(proc_field(cpuinfo, "mode"), std::nullopt);
}

TEST(StatField, CountsBehindAnyName) {
  for (const char* const name : {"cat", "a b", ") Z 1", "(", ""}) {
    const std::string stat = "12 (" + std::string(name) + ") S 1 7 8";
    EXPECT_EQ(stat_field(stat, 3), "S") << name;
    EXPECT_EQ(stat_field(stat, 4), "1") << name;
    EXPECT_EQ(stat_field(stat, 6), "8") << name;
    EXPECT_EQ(stat_field(stat, 7), "") << name;
  }
  for (const char* const stat : {"", "12", "12 (cat)", "12 (cat) "}) {
    EXPECT_EQ(stat_field(stat, 3), "") << stat;
  }
}

TEST(ProcFileField, IsReadFromTheKernel) {
  EXPECT_NE(proc_file_field("/proc/self/status", "Pid"), std::nullopt);
  EXPECT_EQ(proc_file_field("/proc/self/status", "Nothing"), std::nullopt);
  EXPECT_EQ(proc_file_field("/proc/no/such/file", "Pid"), std::nullopt);
  EXPECT_EQ(processor_field("processor"), "0");
  EXPECT_EQ(processor_field("nothing"), "");
}

}  // namespace
}  // namespace crosstalk::proc_fields_test
