// SPDX-License-Identifier: Apache-2.0
#include "attribution/program/program_names.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::program_names_test {
namespace {

profile::ProcessRow process(const std::string& executable, const std::string& command) {
  profile::ProcessRow row;
  row.executable = executable;
  row.command = command;
  return row;
}

TEST(ProgramNames, CommandsAreSplitAsAShellDoes) {
  EXPECT_EQ(program_of("'/a b/prog' 1 2"), "prog");
  EXPECT_EQ(arguments_of("'/a b/prog' 1 2"), "1 2");
  EXPECT_EQ(program_of("./x"), "x");
  EXPECT_EQ(arguments_of("./x"), "");
}

TEST(ProgramNames, AProgramIsCalledAsItWasStarted) {
  EXPECT_EQ(program_name(process("/usr/bin/redis-check-rdb", "redis-server --port 0")), "redis-server");
  EXPECT_EQ(program_name(process("/usr/bin/redis-check-rdb", "/usr/bin/redis-server")), "redis-server");
  EXPECT_EQ(program_name(process("/usr/bin/pigz", "pigz -p 2")), "pigz");
}

TEST(ProgramNames, AFirstWordThatIsNoFilesNameSaysNothing) {
  EXPECT_EQ(program_name(process("/bin/bash", "-bash")), "bash");
  EXPECT_EQ(program_name(process("/usr/lib/postgres", "'postgres: writer'")), "postgres");
  EXPECT_EQ(program_name(process("/bin/true", "")), "true");
}

TEST(ProgramNames, AModuleIsItsProgramWhereThatHasOneName) {
  const std::vector<profile::ProcessRow> one = {process("/usr/bin/redis-check-rdb", "redis-server")};
  EXPECT_EQ(module_name(one, "/usr/bin/redis-check-rdb"), "redis-server");
  EXPECT_EQ(module_name(one, "/lib/libc.so.6"), "libc.so.6");
  const std::vector<profile::ProcessRow> two = {process("/bin/busybox", "sh"), process("/bin/busybox", "ls")};
  EXPECT_EQ(module_name(two, "/bin/busybox"), "busybox");
}

}  // namespace
}  // namespace crosstalk::attribution::program_names_test
