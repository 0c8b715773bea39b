// SPDX-License-Identifier: Apache-2.0
// A recording of several files: each is a complete profile, and each row is in the file of its time.
#include "daemon/profile_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "daemon/told_once.h"
#include "profile/reader.h"
#include "profile/switched_files.h"
#include "tests/daemon/collected_rows.h"

namespace crosstalk::daemon::profile_files_test {
namespace {

namespace fs = std::filesystem;
using profile::ProfileReader;

constexpr std::uint64_t ms = 1'000'000;

class Directory {
 public:
  Directory() {
    std::string name = (fs::temp_directory_path() / "crosstalk-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  ~Directory() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// No file can be opened while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const int next = ::dup(0);
    ::close(next);
    rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

/// A recording from 1000 ms on with one process of two threads.
class SeveralFiles : public testing::Test {
 protected:
  void SetUp() override { begin(0); }

  void begin(std::size_t most) {
    SwitchedFiles names(directory_ / "p.db", most);
    auto writer = profile::ProfileWriter::create(names.next(1));
    ASSERT_TRUE(writer);
    files_ = std::make_unique<ProfileFiles>(std::move(*writer), std::move(names),
                                            [this](const std::string& line) { warnings_.push_back(line); });
    table_ = std::make_unique<ProcessTable>(*files_);
    files_->begin(*table_, 1000 * ms);
    put_session();
    profile::ProcessStart start;
    start.pid = 10;
    start.time_ns = 1000 * ms;
    process_ = table_->begin_process(start, "/bin/a", "a");
    for (ThreadId* const thread : {&one_, &other_}) {
      *thread = table_->begin_thread(11, 1000 * ms);
      table_->change(*thread).process = process_;
    }
    table_->flush();
  }

  void put_session() {
    profile::Session session;
    session.complete = true;
    files_->put(session);
  }

  void put_sample(ThreadId thread, std::uint64_t time_ms, std::uint32_t watch = 0, std::uint32_t stack = 0) {
    if (stack != 0) {
      profile::StackRow row;
      row.id = StackId{stack};
      row.bytes = {1, 2, 3};
      files_->put(row);
    }
    profile::SampleRow row;
    row.thread = thread;
    row.time_ns = time_ms * ms;
    row.cpu_ns = 4 * ms;
    row.watch = WatchId{watch};
    row.stack = StackId{stack};
    files_->put(row);
  }

  void put_watch(std::uint32_t id, std::uint64_t time_ms, std::uint32_t stack = 0) {
    profile::WatchRow row;
    row.id = WatchId{id};
    row.thread = one_;
    row.time_ns = time_ms * ms;
    row.sample_cpu_ns = 4 * ms;
    row.sample_stack = StackId{stack};
    row.words.push_back({0, 8, 0, 0.5F});
    files_->put(row);
  }

  void put_trap(std::uint32_t watch, std::uint64_t time_ms, std::uint32_t sequence) {
    profile::TrapRow row;
    row.watch = WatchId{watch};
    row.thread = other_;
    row.time_ns = time_ms * ms;
    row.sequence = sequence;
    files_->put(row);
  }

  /// As the recorder does it.
  void change(std::uint64_t time_ms, std::uint32_t last_watch = 0) {
    files_->begin_next(time_ms * ms, last_watch, {});
    end_totals();
  }
  void end_totals() {
    table_->flush();
    put_session();
    files_->commit();
    (void)table_->evict(UINT64_MAX, {});
    files_->hand_over();
    put_session();
    table_->put_living(files_->present());
  }
  void finish(std::uint64_t time_ms) {
    files_->set_now(time_ms * ms);
    table_->flush();
    put_session();
    files_->commit();
    files_->finish();
  }

  [[nodiscard]] std::vector<std::string> paths() const { return profile::switched_files(directory_ / "p.db"); }
  [[nodiscard]] ProfileReader read(std::size_t file) const {
    auto reader = ProfileReader::open(paths().at(file));
    if (!reader) {
      ADD_FAILURE() << reader.error().message;
      std::abort();
    }
    return std::move(*reader);
  }
  static std::vector<profile::SampleRow> samples(const ProfileReader& reader) {
    std::vector<profile::SampleRow> rows;
    EXPECT_TRUE(reader.for_each_sample([&](const profile::SampleRow& row) { rows.push_back(row); }));
    return rows;
  }
  static std::vector<std::uint32_t> trapped(const ProfileReader& reader) {
    std::vector<std::uint32_t> watches;
    EXPECT_TRUE(reader.for_each_trapped_watch(
        [&](std::size_t watch, std::span<const profile::TrapRow> traps) {
          watches.insert(watches.end(), traps.size(), reader.watches()[watch].id.value);
        },
        [&] { watches.clear(); }));
    return watches;
  }

  Directory directory_;
  std::vector<std::string> warnings_;
  std::unique_ptr<ProfileFiles> files_;
  std::unique_ptr<ProcessTable> table_;
  ProcessId process_;
  ThreadId one_, other_;
};

TEST_F(SeveralFiles, EachIsAProfileOfItsInterval) {
  table_->change(one_).cpu_ns = 50 * ms;
  put_sample(one_, 1100);
  change(1200);
  table_->change(one_).cpu_ns = 80 * ms;
  put_sample(one_, 1300);
  finish(1500);
  ASSERT_EQ(paths().size(), 2U);
  const ProfileReader first = read(0), second = read(1);
  EXPECT_EQ(first.session().begin_ns, 1000 * ms);
  EXPECT_EQ(first.session().end_ns, 1200 * ms);
  EXPECT_EQ(second.session().begin_ns, 1200 * ms);
  EXPECT_EQ(second.session().end_ns, 1500 * ms);
  for (const ProfileReader* const reader : {&first, &second}) {
    EXPECT_TRUE(reader->session().complete);
    EXPECT_EQ(reader->processes().size(), 1U);
    ASSERT_EQ(reader->threads().size(), 2U);
    EXPECT_EQ(samples(*reader).size(), 1U);
  }
  EXPECT_EQ(first.threads()[0].cpu_ns, 50 * ms);
  EXPECT_EQ(second.threads()[0].cpu_ns, 30 * ms);
  EXPECT_EQ(samples(second)[0].time_ns, 1300 * ms);
  EXPECT_EQ(files_->stored().samples, 2U);
  for (const std::string& path : paths()) {
    EXPECT_FALSE(fs::exists(path + "-wal"));
  }
}

TEST_F(SeveralFiles, LateRowsGoToTheFileOfTheirTime) {
  change(1200);
  put_sample(one_, 1199, 0, 1);
  put_sample(one_, 1200, 0, 2);
  put_sample(one_, 1198, 0, 3);
  files_->finish_ended();
  put_sample(one_, 1197, 0, 4);
  put_sample(one_, 1300, 0, 5);
  EXPECT_EQ(files_->take_late(), 1U);
  EXPECT_EQ(files_->take_late(), 0U);
  finish(1400);
  const ProfileReader first = read(0), second = read(1);
  EXPECT_EQ(samples(first).size(), 2U);
  ASSERT_EQ(samples(second).size(), 2U);
  for (const ProfileReader* const reader : {&first, &second}) {
    std::vector<StackId> stacks;
    EXPECT_TRUE(reader->for_each_stack([&](const profile::StackRow& row) { stacks.push_back(row.id); }));
    ASSERT_EQ(stacks.size(), 2U);
    EXPECT_EQ(samples(*reader)[0].stack, stacks[0]);
    EXPECT_EQ(samples(*reader)[1].stack, stacks[1]);
  }
}

TEST_F(SeveralFiles, AWatchIsInOneFileWithItsSampleAndTraps) {
  put_sample(one_, 1199, 5, 1);
  put_watch(5, 1199, 1);
  change(1200, 5);
  put_sample(one_, 1201, 6, 2);
  put_watch(6, 1201, 2);
  put_trap(5, 1205, 0);
  put_trap(6, 1206, 0);
  put_trap(6, 1207, 1);
  put_watch(5, 1199, 1);  // its closing
  files_->finish_ended();
  put_trap(5, 1260, 1);
  put_watch(5, 1199, 1);
  EXPECT_EQ(files_->take_late(), 1U);
  finish(1400);
  const ProfileReader first = read(0), second = read(1);
  ASSERT_EQ(first.watches().size(), 1U);
  ASSERT_EQ(second.watches().size(), 1U);
  EXPECT_EQ(first.watches()[0].id, WatchId{5});
  EXPECT_EQ(second.watches()[0].id, WatchId{6});
  EXPECT_EQ(trapped(first), std::vector<std::uint32_t>{5});
  EXPECT_EQ(trapped(second), (std::vector<std::uint32_t>{6, 6}));
  for (const ProfileReader* const reader : {&first, &second}) {
    EXPECT_EQ(samples(*reader).at(0).watch, reader->watches()[0].id);
    EXPECT_EQ(samples(*reader).at(0).stack, reader->watches()[0].sample_stack);
  }
}

/// Or a file would claim more time than has elapsed.
TEST_F(SeveralFiles, ASampleStandsForNoTimeBeforeItsFile) {
  put_sample(one_, 1002);
  change(1200);
  put_sample(one_, 1201, 7);
  put_watch(7, 1201);
  put_sample(one_, 1210);
  finish(1400);
  EXPECT_EQ(samples(read(0))[0].cpu_ns, 4 * ms) << "no file came before";
  EXPECT_EQ(samples(read(1))[0].cpu_ns, 1 * ms);
  EXPECT_EQ(read(1).watches()[0].sample_cpu_ns, 1 * ms);
  EXPECT_EQ(samples(read(1))[1].cpu_ns, 4 * ms);
}

TEST_F(SeveralFiles, OnlyTheLivingAreInTheNextFile) {
  profile::ProcessStart start;
  start.pid = 20;
  start.time_ns = 1100 * ms;
  const ProcessId brief = table_->begin_process(start, "/bin/b", "b");
  const ThreadId thread = table_->begin_thread(20, 1100 * ms);
  table_->change(thread).process = brief;
  table_->change(brief).end_ns = 1150 * ms;
  table_->change(thread).end_ns = 1150 * ms;
  change(1200);
  put_sample(one_, 1300);
  finish(1400);
  EXPECT_EQ(read(0).processes().size(), 2U);
  EXPECT_EQ(read(0).threads().size(), 3U);
  ASSERT_EQ(read(1).processes().size(), 1U);
  EXPECT_EQ(read(1).processes()[0].pid, 10);
  EXPECT_EQ(read(1).threads().size(), 2U);
}

/// A file may be told of a thread by a late sample, before or without the thread's row.
TEST_F(SeveralFiles, RowsThatOthersReferToAreThere) {
  change(1200);
  profile::ProcessStart start;
  start.pid = 20;
  start.time_ns = 1198 * ms;
  const ProcessId late = table_->begin_process(start, "/bin/b", "b");
  const ThreadId thread = table_->begin_thread(20, 1198 * ms);
  table_->change(thread).process = late;
  table_->change(thread).cpu_ns = 90 * ms;
  put_sample(thread, 1199);
  files_->finish_ended();
  finish(1400);
  ASSERT_EQ(read(0).threads().size(), 3U);
  EXPECT_EQ(read(0).threads()[2].tid, 20);
  EXPECT_EQ(read(0).threads()[2].cpu_ns, 0U) << "the next file has it";
  EXPECT_EQ(read(0).processes()[1].pid, 20);
  EXPECT_EQ(read(1).threads()[2].cpu_ns, 90 * ms);
}

TEST_F(SeveralFiles, AThreadThatEndedBeforeTheSwitchHasItsTotalsThere) {
  table_->change(other_).cpu_ns = 30 * ms;
  change(1200);
  table_->change(other_).cpu_ns = 45 * ms;
  table_->change(other_).end_ns = 1190 * ms;
  table_->flush();
  files_->finish_ended();
  finish(1400);
  EXPECT_EQ(read(0).threads()[1].cpu_ns, 45 * ms);
  EXPECT_EQ(read(0).threads()[1].end_ns, 1190 * ms);
  ASSERT_EQ(read(1).threads().size(), 2U) << "it was thought to live";
  EXPECT_EQ(read(1).threads()[1].cpu_ns, 0U);
}

TEST_F(SeveralFiles, AProcessKnowsItsParentOnlyWhereThatIs) {
  profile::ProcessStart start;
  start.pid = 20, start.parent_pid = 10, start.after_fork = 1, start.time_ns = 1100 * ms;
  const ProcessId child = table_->begin_process(start, "/bin/a", "a");
  table_->change(process_).end_ns = 1150 * ms;
  for (const ThreadId thread : {one_, other_}) {
    table_->change(thread).end_ns = 1150 * ms;
  }
  change(1200);
  start.pid = 30, start.parent_pid = 20, start.time_ns = 1300 * ms;
  (void)table_->begin_process(start, "/bin/a", "a");
  table_->change(child).end_ns = 1350 * ms;
  finish(1400);
  EXPECT_EQ(read(0).processes()[1].modules_of, ProcessId{0});
  EXPECT_EQ(read(1).processes()[0].pid, 20);
  EXPECT_EQ(read(1).processes()[0].modules_of, std::nullopt);
  EXPECT_EQ(read(1).processes()[1].pid, 30);
  EXPECT_EQ(read(1).processes()[1].modules_of, ProcessId{0});
}

TEST_F(SeveralFiles, WhatIsToldOnceMayBePutOnceMore) {
  ToldOnce told;
  profile::StackRow stack;
  stack.id = StackId{3};
  stack.bytes = {1};
  profile::ThreadCreationRow creation;
  creation.thread = one_;
  creation.stack = stack.id;
  creation.time_ns = 1100 * ms;
  told.keep(creation, stack);
  files_->put(stack);
  files_->put(creation);
  change(1200);
  told.put_everything(files_->present(), [](auto) { return true; });
  put_sample(one_, 1300, 0, 4);
  finish(1400);
  const ProfileReader second = read(1);
  ASSERT_EQ(second.thread_creations().size(), 1U);
  EXPECT_EQ(second.thread_creations()[0].time_ns, 1200 * ms);
  std::vector<StackId> stacks;
  EXPECT_TRUE(second.for_each_stack([&](const profile::StackRow& row) { stacks.push_back(row.id); }));
  EXPECT_EQ(stacks, (std::vector<StackId>{second.thread_creations()[0].stack, samples(second)[0].stack}));
}

TEST_F(SeveralFiles, LooksAtWaitsGoByTheirTimeWithTheirStacks) {
  profile::StackRow stack;
  profile::SampledWaitRow wait;
  wait.thread = one_;
  wait.kind = profile::LookKind::waiting;
  wait.looks = 1;
  for (const std::uint64_t time_ns : {1100 * ms, 1300 * ms}) {
    if (time_ns > 1200 * ms) {
      change(1200);
    }
    ++stack.id.value;
    wait.stack = stack.id;
    wait.time_ns = time_ns;
    files_->put(stack);
    files_->put(wait);
  }
  finish(1400);
  for (const std::size_t file : {0, 1}) {
    const ProfileReader reader = read(file);
    ASSERT_EQ(reader.sampled_waits().size(), 1U) << file;
    std::vector<StackId> stacks;
    EXPECT_TRUE(reader.for_each_stack([&](const profile::StackRow& row) { stacks.push_back(row.id); }));
    EXPECT_EQ(stacks, std::vector<StackId>{reader.sampled_waits()[0].stack}) << file;
  }
}

TEST_F(SeveralFiles, AFileThatCannotBeMadeIsSaidOnceAndTheNextOneIsRight) {
  put_sample(one_, 1100);
  table_->change(one_).cpu_ns = 50 * ms;
  {
    const NoDescriptors none;
    change(1200);
  }
  put_sample(one_, 1300);
  table_->change(one_).cpu_ns = 80 * ms;
  files_->finish_ended();
  {
    const NoDescriptors none;
    change(1400);
  }
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("tries again at the next switch"), std::string::npos) << warnings_[0];
  table_->change(one_).cpu_ns = 100 * ms;
  change(1600);
  put_sample(one_, 1700);
  table_->change(one_).cpu_ns = 107 * ms;
  finish(1800);
  ASSERT_EQ(paths().size(), 2U);
  EXPECT_EQ(read(0).threads()[0].cpu_ns, 50 * ms);
  EXPECT_EQ(read(1).session().begin_ns, 1600 * ms);
  EXPECT_EQ(read(1).threads()[0].cpu_ns, 7 * ms);
  EXPECT_EQ(samples(read(1)).size(), 1U);
  EXPECT_EQ(warnings_.size(), 1U);
  EXPECT_NE(files_->first_loss(), "");
  EXPECT_EQ(files_->names()->files_made(), 2U) << "the first one, and the last";
}

TEST_F(SeveralFiles, TheOldestAreRemoved) {
  files_.reset();
  fs::remove_all(directory_ / "");
  begin(2);
  for (const std::uint64_t time_ms : {1200, 1300, 1400}) {
    change(time_ms);
    files_->finish_ended();
  }
  EXPECT_EQ(paths().size(), 2U);
  finish(1500);
  EXPECT_EQ(paths(), (std::vector<std::string>{files_->names()->oldest(), files_->names()->latest()}));
  EXPECT_EQ(files_->names()->files_kept(), 2U);
  EXPECT_EQ(read(0).session().begin_ns, 1300 * ms);
  EXPECT_EQ(read(1).session().begin_ns, 1400 * ms);
  EXPECT_EQ(files_->names()->files_made(), 4U);
}

TEST(NamesOfFiles, AscendAndAreNobodyElses) {
  const Directory directory;
  SwitchedFiles names(directory / "p.db", 1);
  const std::string first = names.next(5000);
  EXPECT_EQ(first, profile::switched_name(directory / "p.db", 5000));
  EXPECT_EQ(names.next(4000), profile::switched_name(directory / "p.db", 5001)) << "the clock was set back";
  const std::string others = profile::switched_name(directory / "p.db", 5002);
  std::ofstream(others) << "of another recording";
  names.made();
  EXPECT_EQ(names.next(5002), profile::switched_name(directory / "p.db", 5003));
  names.made();
  names.remove_surplus();
  EXPECT_TRUE(fs::exists(others));
  EXPECT_EQ(names.oldest(), profile::switched_name(directory / "p.db", 5003));
  EXPECT_EQ(names.latest(), names.oldest());
}

/// Its totals may come after the file's session, which has the sums over all threads.
TEST_F(SeveralFiles, ProcessorWaitsIncludeThreadsThatAreKnownLate) {
  change(1200);
  table_->change(other_).ran_ns = 60 * ms;
  table_->change(other_).waited_ns = 20 * ms;
  table_->change(other_).end_ns = 1190 * ms;
  table_->flush();
  files_->finish_ended();
  finish(1400);
  EXPECT_EQ(read(0).session().waits.threads, 1U);
  EXPECT_EQ(read(0).session().waits.ran_ns, 60 * ms);
  EXPECT_EQ(read(0).session().waits.waited_ns, 20 * ms);
  EXPECT_EQ(read(0).session().end_ns, 1200 * ms);
  EXPECT_EQ(read(1).session().waits.threads, 0U);
}

TEST_F(SeveralFiles, ProcessorWaitsOfTheLastFileIncludeThreadsThatItOwed) {
  change(1200);
  files_->finish_ended();
  files_->set_now(1400 * ms);
  put_session();
  table_->change(other_).ran_ns = 60 * ms;
  table_->flush();
  files_->finish();
  EXPECT_EQ(read(1).session().waits.threads, 1U);
  EXPECT_EQ(read(1).session().waits.ran_ns, 60 * ms);
}

TEST(NamesOfFiles, WithoutALimitAreNotKeptInMemory) {
  SwitchedFiles names("/nowhere/p.db", 0);
  for (std::int64_t ms = 1; ms <= 1000; ++ms) {
    (void)names.next(ms);
    names.made();
    names.remove_surplus();
  }
  EXPECT_EQ(names.oldest(), profile::switched_name("/nowhere/p.db", 1));
  EXPECT_EQ(names.latest(), profile::switched_name("/nowhere/p.db", 1000));
  EXPECT_EQ(names.files_kept(), 1000U);
}

TEST(OneFile, HasTheRowsAsTheyAre) {
  const Directory directory;
  auto writer = profile::ProfileWriter::create(directory / "p.db");
  ASSERT_TRUE(writer);
  ProfileFiles files(std::move(*writer), std::nullopt, {});
  ProcessTable table(files);
  files.begin(table, 1000);
  profile::Session session;
  session.begin_ns = 500;
  session.waits.threads = 3;
  files.put(session);
  profile::ProcessRow process;
  files.put(process);
  profile::ThreadRow thread;
  thread.cpu_ns = 99;
  thread.end_ns = 700;
  files.put(thread);
  files.commit();
  files.finish();
  const auto reader = ProfileReader::open(directory / "p.db");
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->session().begin_ns, 500U);
  EXPECT_EQ(reader->session().waits.threads, 3U);
  EXPECT_EQ(reader->threads().at(0).cpu_ns, 99U);
  EXPECT_EQ(files.names(), nullptr);
}

}  // namespace
}  // namespace crosstalk::daemon::profile_files_test
