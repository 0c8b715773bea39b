// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/process_start.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/in_target/attach_fixture.h"

namespace crosstalk::in_target::test::process_start_test {
namespace {

class ProcessStart : public AttachFixture {};

std::string tail_of(const std::vector<std::byte>& record, std::size_t fixed_bytes) {
  profile::RecordHeader header;
  std::memcpy(&header, record.data(), sizeof header);
  return {reinterpret_cast<const char*>(record.data() + fixed_bytes), header.tail};
}

TEST_F(ProcessStart, AProcessBeginsWithItsProgramAndItsCommandLine) {
  observe();
  runtime().config.watchpoints_allowed = 1;
  runtime().config.watchpoints = 3;
  static_cast<void>(arena_.records(0));
  write_process_start(true);
  const Records all = arena_.records(0);
  const auto starts = of_type<profile::ProcessStart>(all, profile::RecordType::process_start);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].pid, ::getpid());
  EXPECT_EQ(starts[0].parent_pid, ::getppid());
  EXPECT_EQ(starts[0].after_fork, 1U);
  EXPECT_EQ(starts[0].registers_free, 3U);
  EXPECT_EQ(starts[0].observation, profile::Observation::preloaded);
  const std::string tail = tail_of(all[0], sizeof(profile::ProcessStart));
  EXPECT_EQ(tail.substr(0, tail.find('\0')), std::filesystem::read_symlink("/proc/self/exe").string());
  EXPECT_NE(tail.find("test_in_target", tail.find('\0') + 1), std::string::npos) << "how it was called";
}

TEST_F(ProcessStart, WhereNoWatchpointCanBeHadNoneIsPromised) {
  observe();
  runtime().injected = true;
  static_cast<void>(arena_.records(0));
  write_process_start(false);
  const auto starts = of_type<profile::ProcessStart>(arena_.records(0), profile::RecordType::process_start);
  ASSERT_EQ(starts.size(), 1U);
  EXPECT_EQ(starts[0].registers_free, 0U);
  EXPECT_EQ(starts[0].observation, profile::Observation::injected);
}

}  // namespace
}  // namespace crosstalk::in_target::test::process_start_test
