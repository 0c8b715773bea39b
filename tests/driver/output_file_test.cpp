// SPDX-License-Identifier: Apache-2.0
#include "driver/files/output_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace crosstalk::driver::output_file_test {
namespace {

NameFacts facts() {
  NameFacts made;
  made.pid = 42;
  made.host = "node7";
  made.time.tm_year = 130;
  made.time.tm_mon = 0;
  made.time.tm_mday = 31;
  made.time.tm_hour = 23;
  made.time.tm_min = 59;
  made.time.tm_sec = 58;
  return made;
}

TEST(OutputName, ExpandsItsSequences) {
  EXPECT_EQ(expand_name("a.db", facts()).value(), "a.db");
  EXPECT_EQ(expand_name("%h/%p-%t.db", facts()).value(), "node7/42-20300131-235958.db");
  EXPECT_EQ(expand_name("100%%.db", facts()).value(), "100%.db");
}

TEST(OutputName, RefusesOthers) {
  EXPECT_EQ(expand_name("%x.db", facts()).error().code, ErrorCode::invalid_argument);
  EXPECT_FALSE(expand_name("a%", facts()));
}

class OutputFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "crosstalk-output-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(OutputFile, MakesParentsAndLeavesNothingElse) {
  const auto path = folder_ / "a" / "b" / "x.db";
  EXPECT_TRUE(check_writable(path.string()));
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "a" / "b"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "a" / "b"));
}

TEST_F(OutputFile, LeavesAnExistingFileAlone) {
  const auto path = folder_ / "x.db";
  std::ofstream(path) << "before";
  EXPECT_TRUE(check_writable(path.string()));
  EXPECT_EQ(std::filesystem::file_size(path), 6U);
}

TEST_F(OutputFile, RefusesDirectoriesDevicesAndForbiddenPlaces) {
  EXPECT_EQ(check_writable(folder_.string()).error().code, ErrorCode::permission);
  EXPECT_FALSE(check_writable("/dev/null"));
  EXPECT_FALSE(check_writable("/proc/x.db"));
  std::ofstream(folder_ / "file") << "x";
  EXPECT_FALSE(check_writable((folder_ / "file" / "x.db").string()));
}

}  // namespace
}  // namespace crosstalk::driver::output_file_test
