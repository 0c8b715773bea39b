// SPDX-License-Identifier: Apache-2.0
// Whole profiles, written and read back, with this test's own executable as the recorded program.
#include "attribution/analysis.h"

#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "profile/writer.h"

extern "C" {
struct TwoCounters {
  long first, second;
};
alignas(64) TwoCounters attribution_test_counters;

// Real code, for its name and lines; its instructions stand for the accesses.
[[gnu::noinline]] long attribution_test_work(long n) {
  long sum = 0;
  for (long i = 0; i < n; ++i) {
    sum += attribution_test_counters.first;
    asm volatile("" : "+r"(sum));
  }
  return sum;
}
}

namespace crosstalk::attribution::test::analysis_test {
namespace {

using profile::SampleRow;
constexpr std::uint64_t ms = 1'000'000;

profile::ModuleRow this_program() {
  profile::ModuleRow row;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& module = *static_cast<profile::ModuleRow*>(data);
        module.bias = info->dlpi_addr;
        module.begin = UINT64_MAX;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type == PT_LOAD) {
            module.begin = std::min<std::uint64_t>(module.begin, info->dlpi_addr + segment.p_vaddr);
            module.end = std::max<std::uint64_t>(module.end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
          }
        }
        return 1;  // the first is the program itself
      },
      &row);
  row.path = std::filesystem::read_symlink("/proc/self/exe").string();
  return row;
}

class AnalysisTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("attribution_" + std::string(info->name()) + "_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "profile.db").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  template <class Row>
  void put(profile::ProfileWriter& writer, const Row& row) {
    const auto result = writer.put(row);
    ASSERT_TRUE(result) << result.error().message;
  }

  void start(profile::ProfileWriter& writer, const profile::WatchTrial& trial = {}) {
    profile::Session session;
    session.watch_trial = trial;
    session.config.watchpoints_allowed = is_worth_arming(trial) ? 1 : 0;
    session.command = "test";
    session.begin_ns = 1;
    session.end_ns = 1000 * ms + 1;
    session.complete = true;
    put(writer, session);
    profile::ProcessRow process;
    process.pid = getpid();
    put(writer, process);
    for (std::uint32_t i = 0; i < 2; ++i) {
      profile::ThreadRow thread;
      thread.id = ThreadId{i};
      thread.tid = static_cast<std::int32_t>(100 + i);
      thread.cpu_ns = 50 * ms;
      put(writer, thread);
    }
    put(writer, this_program());
  }

  static SampleRow sample(std::uint32_t thread, std::uint64_t time_ns) {
    SampleRow row;
    row.thread = ThreadId{thread};
    row.time_ns = time_ns;
    row.ip = reinterpret_cast<std::uint64_t>(&attribution_test_work);
    row.access_ip = row.ip;
    row.cpu_ns = ms;
    row.address = reinterpret_cast<std::uint64_t>(&attribution_test_counters) + (thread == 0 ? 0 : 8);
    row.width = 8;
    row.access = AccessKind::load;
    row.from = profile::AddressFrom::retired;
    row.flags = profile::sample_eligible;
    return row;
  }

  /// A watch by `s`, then a store by the other thread, then one by itself: each to its own counter.
  void watch(profile::ProfileWriter& writer, SampleRow s, std::uint32_t id, std::uint32_t traps = 2) {
    s.watch = WatchId{id};
    s.flags |= profile::sample_armed;
    put(writer, s);
    profile::WatchRow row;
    row.id = s.watch;
    row.thread = s.thread;
    row.time_ns = s.time_ns;
    row.line = s.address & ~63ULL;
    row.threads = row.armed = 1;
    const std::uint8_t own = s.thread.value == 0 ? 0 : 8;
    const auto other = static_cast<std::uint8_t>(8 - own);
    row.words = {{own, 8, 0, 1.0F}, {other, 8, 0, 0.5F}};
    row.sample_ip = s.ip;
    row.sample_access_ip = s.access_ip;
    row.sample_address = s.address;
    row.sample_cpu_ns = s.cpu_ns;
    row.sample_width = s.width;
    row.sample_access = s.access;
    row.sample_from = s.from;
    row.sample_flags = s.flags;
    put(writer, row);
    for (std::uint32_t i = 0; i < traps; ++i) {
      profile::TrapRow trap;
      trap.watch = row.id;
      trap.sequence = i;
      trap.thread = ThreadId{i == 0 ? 1 - s.thread.value : s.thread.value};
      trap.time_ns = s.time_ns + 1 + i;
      trap.ip = s.ip + 1;
      trap.word = i == 0 ? 1 : 0;
      trap.write_only = true;
      trap.cpu = static_cast<std::uint16_t>(trap.thread.value);
      put(writer, trap);
    }
  }

  Result<Analysis> read(const AnalysisOptions& options = {}) {
    auto reader = profile::ProfileReader::open(path_);
    if (!reader) {
      return tl::unexpected<Error>(reader.error());
    }
    AnalysisOptions offline = options;
    offline.symbols.debuginfod = false;
    return analyse(*reader, offline);
  }

  std::filesystem::path folder_;
  std::string path_;
};

TEST_F(AnalysisTest, FalseSharingOfTwoCounters) {
  auto writer = profile::ProfileWriter::create(path_);
  ASSERT_TRUE(writer) << writer.error().message;
  start(*writer);
  std::uint32_t id = 0;
  for (std::uint32_t i = 0; i < 80; ++i) {
    const SampleRow s = sample(i % 2, 10 * ms + i * ms);
    if (i % 4 < 2) {
      watch(*writer, s, ++id);
    } else {
      put(*writer, s);
    }
  }
  ASSERT_TRUE(writer->finish());
  const auto analysis = read();
  ASSERT_TRUE(analysis) << analysis.error().message;
  ASSERT_EQ(analysis->communication.cells.size(), 2U);
  for (const Cell& cell : analysis->communication.cells) {
    EXPECT_NE(cell.producer, cell.consumer);
    EXPECT_EQ(cell.true_sharing.seen, 0U);
    EXPECT_EQ(cell.false_sharing.seen, 20U);
    EXPECT_NEAR(cell.false_sharing.detections, 40, 1e-9);
    // Every watch saw it, though the partner's word is drawn with 1/2: luck, and no reason to extrapolate beyond the
    // total.
    EXPECT_NEAR(*cell.false_sharing.cost_s, 0.04, 1e-9);
  }
  EXPECT_EQ(analysis->communication.cores.size(), 2U);
  ASSERT_FALSE(analysis->communication.objects.empty());
  EXPECT_EQ(analysis->communication.objects[0].name, "attribution_test_counters");
  EXPECT_EQ(analysis->communication.objects[0].size, sizeof(TwoCounters));
  ASSERT_FALSE(analysis->communication.lines.empty());
  EXPECT_EQ(analysis->communication.lines[0].function, "attribution_test_work");
  ASSERT_FALSE(analysis->functions.empty());
  EXPECT_EQ(analysis->functions[0].function, "attribution_test_work");
  EXPECT_NEAR(analysis->functions[0].share, 0.8, 1e-9);  // samples stand for 80 ms of the 100
  EXPECT_NEAR(analysis->cpu_s, 0.1, 1e-9);
  EXPECT_EQ(analysis->sampling.armed, 40U);
  EXPECT_EQ(analysis->sampling.traps, 80U);
  EXPECT_NE(analysis->findings[0].sentence.find("Threads 0 and 1 exchange"), std::string::npos);
  EXPECT_TRUE(std::any_of(analysis->warnings.begin(), analysis->warnings.end(),
                          [](const Warning& w) { return w.code == "no_counts_without_pmu"; }));
}

TEST_F(AnalysisTest, WatchesThatNeverTrapOnASharedLineAreNoEvidence) {
  auto writer = profile::ProfileWriter::create(path_);
  ASSERT_TRUE(writer) << writer.error().message;
  start(*writer, {profile::TrialVerdict::fires, 0, 4, "", ""});
  for (std::uint32_t i = 0; i < 300; ++i) {
    SampleRow s = sample(i % 2, 10 * ms + i * ms);
    s.access = AccessKind::store;
    watch(*writer, s, i + 1, 0);
  }
  ASSERT_TRUE(writer->finish());
  const auto analysis = read();
  ASSERT_TRUE(analysis) << analysis.error().message;
  EXPECT_EQ(analysis->sight.sees, WatchSight::Sees::nothing);
  EXPECT_EQ(analysis->findings[0].kind, "function") << "where the time goes can be told all the same";
  EXPECT_TRUE(analysis->findings[1].sentence.starts_with("Crosstalk could not watch"))
      << analysis->findings[1].sentence;
  EXPECT_FALSE(analysis->communication.unseen) << "no limit rests on what could not be seen";
  EXPECT_FALSE(analysis->threads[0].communication_s);
  const auto has = [&](const std::string& code) {
    return std::any_of(analysis->warnings.begin(), analysis->warnings.end(),
                       [&](const Warning& warning) { return warning.code == code; });
  };
  EXPECT_TRUE(has("watchpoints_silent"));
  EXPECT_FALSE(has("too_few_events")) << "more of it would not help";
}

TEST_F(AnalysisTest, OfPartSightWhatWasNotSeenIsUnknown) {
  auto writer = profile::ProfileWriter::create(path_);
  ASSERT_TRUE(writer) << writer.error().message;
  start(*writer, {profile::TrialVerdict::partly, profile::trial_locked, 4, "why", ""});
  for (std::uint32_t i = 0; i < 40; ++i) {
    watch(*writer, sample(i % 2, 10 * ms + i * ms), i + 1);
  }
  ASSERT_TRUE(writer->finish());
  const auto analysis = read();
  ASSERT_TRUE(analysis) << analysis.error().message;
  ASSERT_EQ(analysis->communication.cells.size(), 2U);
  EXPECT_TRUE(analysis->communication.cells[0].false_sharing.cost_s) << "it was seen";
  EXPECT_FALSE(analysis->communication.cells[0].true_sharing.cost_s) << "it may have been by locked updates";
  EXPECT_FALSE(analysis->communication.unseen);
}

TEST_F(AnalysisTest, AnEmptyProfileHasAFinding) {
  auto writer = profile::ProfileWriter::create(path_);
  ASSERT_TRUE(writer) << writer.error().message;
  start(*writer);
  ASSERT_TRUE(writer->finish());
  const auto analysis = read();
  ASSERT_TRUE(analysis) << analysis.error().message;
  EXPECT_FALSE(analysis->findings.empty());
  EXPECT_TRUE(analysis->communication.cells.empty());
  EXPECT_FALSE(analysis->sampling.unknown_frames);
}

TEST_F(AnalysisTest, AnUnknownEstimatorIsRefused) {
  auto writer = profile::ProfileWriter::create(path_);
  ASSERT_TRUE(writer) << writer.error().message;
  start(*writer);
  ASSERT_TRUE(writer->finish());
  AnalysisOptions options;
  options.estimator = "tea_leaves";
  const auto analysis = read(options);
  ASSERT_FALSE(analysis);
  EXPECT_EQ(analysis.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace crosstalk::attribution::test::analysis_test
