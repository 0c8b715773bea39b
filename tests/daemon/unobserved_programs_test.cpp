// SPDX-License-Identifier: Apache-2.0
#include "daemon/unobserved_programs.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace crosstalk::daemon::unobserved_programs_test {
namespace {

using profile::NoticeState;
using profile::Unobserved;

struct MessageSink final : RowSink {
  std::map<std::string, std::uint64_t> count;

  void put(const profile::ProcessRow& /*row*/) override {}
  void put(const profile::ThreadRow& /*row*/) override {}
  void put(const profile::ModuleRow& /*row*/) override {}
  void put(const profile::SampleRow& /*row*/) override {}
  void put(const profile::WatchRow& /*row*/) override {}
  void put(const profile::TrapRow& /*row*/) override {}
  void put(const profile::BlockRow& /*row*/) override {}
  void put(const profile::SharedMappingRow& /*row*/) override {}
  void put(const profile::ThreadCreationRow& /*row*/) override {}
  void put(const profile::ThreadWaitRow& /*row*/) override {}
  void put(const profile::SampledWaitRow& /*row*/) override {}
  void put(const profile::RegionRow& /*row*/) override {}
  void put(const profile::ThreadRegionRow& /*row*/) override {}
  void put(const profile::LookaheadRow& /*row*/) override {}
  void put(const profile::ReadingRow& /*row*/) override {}
  void put(const profile::StackRow& /*row*/) override {}
  void put(const profile::MessageRow& row) override {
    EXPECT_EQ(row.code, "program_not_observed");
    count[row.text] += row.count;
  }
};

UnobservedProgram program(const std::string& name, std::int32_t pid, std::uint64_t time_ns, bool withdrawn = false) {
  return {Unobserved::other_loader, pid, withdrawn, time_ns, "/lib/other.so", name, {}};
}

TEST(UnobservedProgramsTest, AreToldOnceTheyAreCertain) {
  MessageSink sink;
  UnobservedPrograms programs(sink, [](const UnobservedProgram&) {});
  programs.take(program("/a", 10, 100));
  programs.take(program("/a", 11, 200));
  programs.settle(150);
  EXPECT_EQ(
      sink.count,
      (std::map<std::string, std::uint64_t>{{"/a was not observed: it is of another C library (/lib/other.so)", 1}}));
  programs.finish();
  EXPECT_EQ(sink.count.begin()->second, 2U);
}

TEST(UnobservedProgramsTest, AFailedExecTakesItsNoticeBack) {
  MessageSink sink;
  std::vector<std::int32_t> settled;
  UnobservedPrograms programs(sink, [&](const UnobservedProgram& one) { settled.push_back(one.pid); });
  programs.take(program("/a", 10, 100));
  programs.take(program("/a", 11, 101));
  programs.take(program("/a", 10, 102, true));
  programs.take(program("/b", 12, 103, true));  // of nothing that was told
  programs.finish();
  ASSERT_EQ(sink.count.size(), 1U);
  EXPECT_EQ(sink.count.begin()->second, 1U);
  EXPECT_EQ(settled, std::vector<std::int32_t>{11});
}

TEST(UnobservedProgramsTest, ThoseThatAreWatchedFromOutsideAreNotTold) {
  MessageSink sink;
  UnobservedPrograms programs(sink, [](const UnobservedProgram&) {});
  programs.take(program("/watched", 10, 100));
  programs.take(program("/other", 11, 101));
  UnobservedProgram of_32_bits = program("/32", 12, 102);
  of_32_bits.reason = Unobserved::other_class;
  programs.take(of_32_bits);
  std::vector<std::int32_t> offered;
  const auto watch = [&](UnobservedProgram& one) {
    offered.push_back(one.pid);
    one.unwatched = "it is too short";
    return one.program == "/watched";
  };
  programs.offer(watch);
  programs.offer(watch);
  EXPECT_EQ(offered, (std::vector<std::int32_t>{10, 11})) << "once it is known why, nobody tries again";
  programs.finish();
  EXPECT_EQ(sink.count.size(), 2U);
  EXPECT_TRUE(
      sink.count.contains("/other was not observed: it is of another C library (/lib/other.so), and it is too short"));
}

TEST(UnobservedProgramsTest, ManyShareALine) {
  MessageSink sink;
  UnobservedPrograms programs(sink, [](const UnobservedProgram&) {});
  for (int i = 0; i < 10'000; ++i) {
    programs.take(program("/tmp/" + std::to_string(i), i + 1, static_cast<std::uint64_t>(i)));
  }
  programs.finish();
  EXPECT_LT(sink.count.size(), 100U);
  std::uint64_t all = 0;
  for (const auto& [text, count] : sink.count) {
    all += count;
  }
  EXPECT_EQ(all, 10'000U);
}

TEST(UnobservedProgramsTest, NoticesAreTakenInOrderAndFreed) {
  const auto header = std::make_unique<profile::ArenaHeader>();
  const auto tell = [&](std::size_t index, Unobserved reason, std::uint64_t time_ns) {
    profile::UnobservedNotice& notice = header->notices[index];
    notice.reason = reason;
    notice.time_ns = time_ns;
    std::memset(notice.program, 'x', sizeof notice.program);  // no NUL
    notice.state.store(static_cast<std::uint32_t>(NoticeState::ready));
  };
  tell(0, Unobserved::privileged, 20);
  tell(5, Unobserved::statically_linked, 10);
  tell(7, static_cast<Unobserved>(99), 5);
  header->notices[9].state.store(static_cast<std::uint32_t>(NoticeState::claimed));
  const auto taken = take_notices(*header);
  ASSERT_EQ(taken.size(), 2U);
  EXPECT_EQ(taken[0].reason, Unobserved::statically_linked);
  EXPECT_EQ(taken[1].program.size(), sizeof header->notices[0].program);
  EXPECT_TRUE(take_notices(*header).empty());
  EXPECT_EQ(header->notices[7].state.load(), static_cast<std::uint32_t>(NoticeState::free));
  EXPECT_EQ(header->notices[9].state.load(), static_cast<std::uint32_t>(NoticeState::claimed));
}

}  // namespace
}  // namespace crosstalk::daemon::unobserved_programs_test
