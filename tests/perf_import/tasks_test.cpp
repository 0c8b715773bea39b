// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_import/tasks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "profile/reader.h"

namespace crosstalk::perf_import::tasks_test {
namespace {

class TasksTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  ThreadId sample(std::int32_t pid, std::int32_t tid) { return *(*tasks_.sampled(pid, tid))->id; }
  void name(std::int32_t pid, std::int32_t tid, const char* name, bool exec = false) {
    ASSERT_TRUE(tasks_.add(perf_data::Comm{pid, tid, name, exec}, ++now_));
  }
  void fork(std::int32_t pid, std::int32_t tid, std::int32_t parent, bool made_up = false) {
    ASSERT_TRUE(tasks_.add(perf_data::Fork{pid, parent, tid, parent, made_up}, ++now_));
  }
  void map(std::int32_t pid, std::uint64_t begin, const char* name) {
    perf_data::Mapping mapping;
    mapping.pid = pid;
    mapping.begin = begin;
    mapping.bytes = 0x1000;
    mapping.name = name;
    ASSERT_TRUE(tasks_.add(mapping, ++now_));
  }
  /// Returns the profile as written.
  profile::ProfileReader written() {
    auto writer = profile::ProfileWriter::create(path_);
    EXPECT_TRUE(writer.has_value());
    EXPECT_TRUE(writer->put(profile::Session{}));
    EXPECT_TRUE(tasks_.put(*writer, 1, true));
    EXPECT_TRUE(writer->finish());
    auto reader = profile::ProfileReader::open(path_);
    EXPECT_TRUE(reader.has_value()) << reader.error().message;
    return std::move(*reader);
  }

  Tasks tasks_;
  std::uint64_t now_ = 100;
  std::string path_ = testing::TempDir() + "perf_import_tasks." + std::to_string(::getpid()) + ".db";
};

TEST_F(TasksTest, ProcessesThatWereSampledAreThereWithAllTheirThreads) {
  name(1, 1, "init");
  name(10, 10, "program");
  fork(10, 11, 10);
  name(10, 11, "worker");
  map(1, 0x1000, "/sbin/init");
  map(10, 0x1000, "/bin/program");
  EXPECT_EQ(sample(10, 11), ThreadId{0});
  EXPECT_EQ(sample(10, 11), ThreadId{0});
  const auto profile = written();
  ASSERT_EQ(profile.processes().size(), 1U);
  EXPECT_EQ(profile.processes()[0].pid, 10);
  EXPECT_EQ(profile.processes()[0].executable, "/bin/program");
  ASSERT_EQ(profile.threads().size(), 2U);
  EXPECT_EQ(profile.threads()[0].name, "program") << "in the order in which they were made";
  EXPECT_EQ(profile.threads()[0].samples, 0U);
  EXPECT_EQ(profile.threads()[1].name, "worker");
  EXPECT_EQ(profile.threads()[1].samples, 2U);
  ASSERT_EQ(profile.modules().size(), 1U);
}

TEST_F(TasksTest, AChildHasTheCodeOfItsParent) {
  map(10, 0x1000, "/bin/program");
  fork(20, 20, 10);
  sample(20, 20);
  const auto profile = written();
  ASSERT_EQ(profile.processes().size(), 2U);
  EXPECT_EQ(profile.processes()[0].pid, 20);
  EXPECT_TRUE(profile.processes()[0].after_fork);
  EXPECT_EQ(profile.processes()[0].modules_of, ProcessId{1});
  EXPECT_EQ(profile.processes()[1].pid, 10);
}

TEST_F(TasksTest, WhatPerfFoundRunningHasNothingFromItsParent) {
  map(10, 0x1000, "/bin/program");
  fork(20, 20, 10, true);
  sample(20, 20);
  const auto profile = written();
  ASSERT_EQ(profile.processes().size(), 1U);
  EXPECT_FALSE(profile.processes()[0].after_fork);
}

TEST_F(TasksTest, AnotherProgramIsAnotherProcessOnceTheOldOneWasSampled) {
  map(10, 0x1000, "/usr/bin/perf");
  name(10, 10, "a", true);  // no sample before: as if it had begun so
  map(10, 0x1000, "/bin/a");
  sample(10, 10);
  name(10, 10, "b", true);
  map(10, 0x1000, "/bin/b");
  sample(10, 10);
  const auto profile = written();
  ASSERT_EQ(profile.processes().size(), 2U);
  EXPECT_EQ(profile.processes()[0].executable, "/bin/a");
  EXPECT_NE(profile.processes()[0].end_ns, 0U);
  EXPECT_EQ(profile.processes()[1].executable, "/bin/b");
  ASSERT_EQ(profile.threads().size(), 2U);
  EXPECT_EQ(profile.threads()[0].name, "a");
  EXPECT_EQ(profile.threads()[1].name, "b");
}

TEST_F(TasksTest, ANumberThatIsUsedAgainIsAnotherThread) {
  fork(10, 11, 10);
  EXPECT_EQ(sample(10, 11), ThreadId{0});
  tasks_.add(perf_data::Exit{10, 11}, ++now_);
  const std::uint64_t end = now_;
  EXPECT_EQ(sample(10, 11), ThreadId{0});  // on its way out
  fork(10, 11, 10);
  EXPECT_EQ(sample(10, 11), ThreadId{1});
  fork(30, 11, 10);  // of another process
  EXPECT_EQ(sample(30, 11), ThreadId{2});
  const auto profile = written();
  EXPECT_EQ(profile.threads()[0].end_ns, end);
  EXPECT_EQ(profile.threads()[0].samples, 2U);
}

TEST_F(TasksTest, LossesBelongToTheirThreadOrTheFirst) {
  sample(10, 10);
  sample(10, 11);
  tasks_.lose(11, 5);
  tasks_.lose(-1, 7);
  const auto profile = written();
  EXPECT_EQ(profile.threads()[0].lost, 7U);
  EXPECT_EQ(profile.threads()[1].lost, 5U);
}

TEST_F(TasksTest, BuildIdsComeWithMappingsOrByName) {
  const std::byte id[] = {std::byte{0xab}, std::byte{0xcd}};
  const std::byte other[] = {std::byte{0x12}};
  tasks_.add(perf_data::BuildId{-1, id, "/lib/a.so", false});
  tasks_.add(perf_data::BuildId{-1, id, "/lib/b.so", true});  // of the kernel
  map(10, 0x1000, "/lib/a.so");
  map(10, 0x2000, "/lib/b.so");
  perf_data::Mapping mapping;
  mapping.pid = 10;
  mapping.begin = 0x3000;
  mapping.bytes = 0x1000;
  mapping.name = "/lib/a.so";
  mapping.build_id = other;
  ASSERT_TRUE(tasks_.add(mapping, 1));
  sample(10, 10);
  const auto profile = written();
  ASSERT_EQ(profile.modules().size(), 3U);
  std::map<std::uint64_t, std::string> ids;  // by begin
  for (const profile::ModuleRow& module : profile.modules()) {
    ids[module.begin] = module.build_id;
  }
  EXPECT_EQ(ids[0x1000], "abcd");
  EXPECT_EQ(ids[0x2000], "");
  EXPECT_EQ(ids[0x3000], "12");
  EXPECT_EQ(tasks_.unidentified_files(), 1U);
}

TEST_F(TasksTest, AFileWithAnotherInodeIsNotTheOneThatWasRecorded) {
  const std::string file = "/proc/self/exe";
  std::error_code error;
  const std::string program = std::filesystem::read_symlink(file, error).string();
  struct stat status {};
  ASSERT_EQ(::stat(program.c_str(), &status), 0);
  CodeMapping mapping;
  mapping.name = &program;
  EXPECT_FALSE(is_replaced(mapping)) << "nothing is known";
  mapping.inode = status.st_ino;
  EXPECT_FALSE(is_replaced(mapping));
  const std::string gone = program + ".gone";
  mapping.name = &gone;
  EXPECT_FALSE(is_replaced(mapping)) << "there is none";

  perf_data::Mapping mapped;
  mapped.pid = 10;
  mapped.begin = 0x1000;
  mapped.bytes = 0x1000;
  mapped.name = program;
  mapped.inode = status.st_ino + 1;
  ASSERT_TRUE(tasks_.add(mapped, ++now_));
  sample(10, 10);
  const auto profile = written();
  ASSERT_EQ(profile.modules().size(), 1U);
  mapping.name = &program;
  mapping.inode = mapped.inode;
  if (!is_replaced(mapping)) {
    GTEST_SKIP() << "the inodes of this file system do not tell";
  }
  EXPECT_EQ(profile.modules()[0].path, program + " (deleted)");
  EXPECT_EQ(tasks_.replaced_files(), std::vector<std::string>{program});
  EXPECT_EQ(tasks_.unidentified_files(), 0U);
}

}  // namespace
}  // namespace crosstalk::perf_import::tasks_test
