// SPDX-License-Identifier: Apache-2.0
#include "attribution/stacks/weighted_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <string>

#include "attribution/stacks/lenders.h"
#include "attribution/stacks/time_stacks.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::weighted_stacks_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint64_t bias = 0x400000, ms = 1'000'000;
// Addresses of the application's functions, and of the C library's.
constexpr std::uint64_t work = 0x100, feed = 0x200, start = 0x300, idle = 0x400, lone = 0x500;
constexpr std::uint64_t library = 0x900000;

/// Rows for two threads of an application and a C library, and what the digest would say of its samples.
class WeightedStacksTest : public testing::Test {
 protected:
  WeightedStacksTest()
      : processes_(1),
        threads_(make_threads(2)),
        modules_({module_row("/bin/app", bias, bias + 0x3000, bias),
                  module_row("/usr/lib/libc.so.6", library, library + 0x10000, library)}),
        totals_(2) {
    processes_[0].executable = "/bin/app";
    function(0, work, {frame("hot", "/src/app.cpp", 11, true), frame("work", "/src/app.cpp", 21)});
    function(0, feed, {frame("feed", "/src/app.cpp", 31)});
    function(0, start, {frame("start", "/src/app.cpp", 41)});
    function(0, idle, {frame("idle", "/src/app.cpp", 51)});
    function(0, lone, {frame("lone", "/src/app.cpp", 61)});
    function(1, 0x40, {frame("copy")});
    spaces_ = std::make_unique<AddressSpaces>(processes_, modules_);
    view_ = std::make_unique<ProgramView>(processes_, threads_, *spaces_, code_);
    samples_ = std::make_unique<SampledStacks>(*view_);
    blocks_ = std::make_unique<BlockIndex>(std::vector<profile::BlockRow>{});
    shared_ = std::make_unique<SharedIndex>(std::vector<profile::SharedMappingRow>{});
    objects_ = std::make_unique<DataObjects>(*view_, *blocks_, *shared_, stacks_);
    code_.globals.push_back({0, {"counters", 0x2000, 128, {}}});
    expansion_.strata.resize(1);
  }

  void function(std::uint32_t file, std::uint64_t address, std::vector<symbolizer::Frame> frames) {
    symbolizer::CodeLocation location;
    location.frames = std::move(frames);
    location.function_begin = address;
    code_.locations[{file, address}] = location;
  }

  /// A stack whose callers return to `returns`, by their addresses in the application.
  StackId stack(std::uint64_t leaf, const std::vector<std::uint64_t>& returns) {
    profile::StackRow row;
    row.id = StackId{++last_stack_};
    std::vector<std::uint64_t>& addresses = code_.stacks[row.id];
    addresses.push_back(leaf);
    std::transform(returns.begin(), returns.end(), std::back_inserter(addresses),
                   [](std::uint64_t address) { return bias + address; });
    stacks_.want(row.id, Moment{ProcessId{0}, 0});
    stacks_.add(row, *view_);
    return row.id;
  }
  /// A sample at a run-time address. `id` 0: without a stack.
  void sample(std::uint32_t thread, std::uint64_t ip, std::uint64_t ns, StackId id = {}, bool in_kernel = false) {
    profile::SampleRow row;
    row.thread = ThreadId{thread};
    row.ip = ip;
    row.cpu_ns = ns;
    row.stack = id;
    row.flags = in_kernel ? profile::sample_in_kernel : 0;
    samples_->add(row, ns);
    const std::uint64_t address = in_kernel ? ip - 1 : ip;
    CodeTotal total{row.thread, spaces_->find({ProcessId{0}, 0}, address), address, 1, static_cast<double>(ns), 0};
    total.address = total.place ? total.place->address : address;
    total.in_kernel = total.system_call = in_kernel;
    code_totals_.push_back(total);
    totals_[thread].ns += static_cast<double>(ns);
  }

  /// Thread 0 stores, thread 1 pays at `instruction`.
  void communicate(std::uint64_t instruction, double cost_s, StackId id = {}, bool true_sharing = true,
                   std::uint32_t producer = 0) {
    auto seen = std::make_unique<SeenCommunication>();
    seen->producer.thread = ThreadId{producer};
    seen->consumer.thread = ThreadId{1};
    seen->consumer.instruction = instruction;
    seen->consumer.stack = id;
    seen->true_sharing = true_sharing;
    Contribution contribution;
    contribution.seen = seen.get();
    contribution.stratum = 0;
    contributions_.push_back(contribution);
    seen_.push_back(std::move(seen));
    LocatedContribution located;
    located.cost_s = cost_s;
    located.object = objects_->resolve(ThreadId{1}, 0, bias + 0x2000).object;
    located_.push_back(located);
  }

  WeightedStacks run(bool lend = true) {
    summaries_.clear();
    for (std::uint32_t thread = 0; thread < 2; ++thread) {
      summaries_.emplace_back();
      summaries_.back().index = thread;
      summaries_.back().cpu_s = cpu_s_[thread] != 0 ? cpu_s_[thread] : totals_[thread].ns / 1e9;
    }
    return weighted_stacks({*view_, stacks_, *samples_, code_totals_, totals_, summaries_, located_, contributions_,
                            expansion_, *objects_, communication_},
                           {lend});
  }

  /// "0 sampled 2x3000000 hot<work<start": thread, origin of the callers, samples x weight, innermost first.
  static std::string text_of(const WeightedStacks& stacks, const std::vector<std::uint32_t>& places) {
    std::string text;
    for (const std::uint32_t place : places) {
      for (const symbolizer::Frame& each : stacks.places[place].frames) {
        text += (text.empty() ? "" : "<") + each.function + (stacks.places[place].in_kernel ? "_[k]" : "");
      }
    }
    return text;
  }
  static std::vector<std::string> lines_of(const WeightedStacks& stacks) {
    constexpr std::array<const char*, 3> origins = {"sampled", "alike", "unknown"};
    std::vector<std::string> lines;
    for (const TimeStack& row : stacks.time) {
      std::ostringstream line;
      line << row.thread << ' ' << origins.at(static_cast<std::size_t>(row.callers)) << ' ' << row.samples << 'x'
           << row.weight << ' ' << text_of(stacks, row.places);
      lines.push_back(line.str());
    }
    return lines;
  }

  std::vector<profile::ProcessRow> processes_;
  std::vector<profile::ThreadRow> threads_;
  std::vector<profile::ModuleRow> modules_;
  std::vector<ThreadTotal> totals_;
  std::vector<ThreadSummary> summaries_;
  std::array<double, 2> cpu_s_{};
  FakeCode code_;
  StackTable stacks_;
  std::uint32_t last_stack_ = 0;
  std::unique_ptr<AddressSpaces> spaces_;
  std::unique_ptr<ProgramView> view_;
  std::unique_ptr<SampledStacks> samples_;
  std::unique_ptr<BlockIndex> blocks_;
  std::unique_ptr<SharedIndex> shared_;
  std::unique_ptr<DataObjects> objects_;
  std::vector<CodeTotal> code_totals_;
  std::vector<std::unique_ptr<SeenCommunication>> seen_;
  std::vector<Contribution> contributions_;
  std::vector<LocatedContribution> located_;
  Expansion expansion_;
  Communication communication_;
};

TEST_F(WeightedStacksTest, AStackIsReadFromItsInnermostInlinedFunctionOutwards) {
  sample(0, bias + work + 4, 3 * ms, stack(bias + work + 4, {feed + 5, start + 9}));
  const WeightedStacks stacks = run();
  EXPECT_THAT(lines_of(stacks), ElementsAre("0 sampled 1x3000000 hot<work<feed<start"));
  ASSERT_EQ(stacks.time[0].places.size(), 3U);
  EXPECT_TRUE(stacks.places[stacks.time[0].places[0]].frames[0].inlined);
}

TEST_F(WeightedStacksTest, AReturnAddressCountsForTheCallBeforeIt) {
  sample(0, bias + work, ms, stack(bias + work, {start}));  // the call was the last instruction of feed()
  EXPECT_THAT(lines_of(run()), ElementsAre("0 sampled 1x1000000 hot<work<feed"));
}

TEST_F(WeightedStacksTest, SamplesWithoutAStackTakeTheCallersOfOthersAtTheirPlaceInProportion) {
  sample(0, bias + work + 4, 3 * ms, stack(bias + work + 4, {feed + 5}));
  sample(0, bias + work + 4, ms, stack(bias + work + 4, {start + 9}));
  sample(0, bias + work + 8, ms, stack(bias + work + 8, {idle + 1}));  // in the function, but elsewhere
  for (int i = 0; i < 4; ++i) {
    sample(0, bias + work + 4, ms);
  }
  EXPECT_THAT(lines_of(run()), ElementsAre("0 sampled 1x3000000 hot<work<feed", "0 alike 3x3000000 hot<work<feed",
                                           "0 sampled 1x1000000 hot<work<start", "0 alike 1x1000000 hot<work<start",
                                           "0 sampled 1x1000000 hot<work<idle"));
}

TEST_F(WeightedStacksTest, ElseOfOthersInTheirFunctionOfTheirThread) {
  sample(0, bias + work + 8, ms, stack(bias + work + 8, {feed + 5}));
  sample(0, bias + work + 4, 2 * ms);
  EXPECT_THAT(lines_of(run()), ElementsAre("0 alike 1x2000000 hot<work<feed", "0 sampled 1x1000000 hot<work<feed"));
}

TEST_F(WeightedStacksTest, ElseOfThreadsThatBeganAlike) {
  threads_[0].start_routine = threads_[1].start_routine = bias + start;
  sample(0, bias + work, 2 * ms, stack(bias + work, {feed + 5}));
  sample(0, bias + work, ms, stack(bias + work, {idle + 5}));
  sample(1, bias + work, 3 * ms);
  sample(1, bias + work, 3 * ms);
  sample(1, bias + work, 3 * ms);
  threads_[1].name = "other";  // read when the stacks are joined
  EXPECT_THAT(lines_of(run()), Contains("1 unknown 3x9000000 hot<work"));
  threads_[1].name = threads_[0].name;
  const WeightedStacks stacks = run();
  EXPECT_THAT(lines_of(stacks), Contains("1 alike 2x6000000 hot<work<feed"));
  EXPECT_THAT(lines_of(stacks), Contains("1 alike 1x3000000 hot<work<idle"));
}

TEST_F(WeightedStacksTest, ElseOfOtherThreadsOnlyIfAllOfThemAgree) {
  sample(0, bias + work, ms, stack(bias + work, {feed + 5}));
  sample(0, bias + idle, ms, stack(bias + idle, {feed + 5}));
  sample(0, bias + idle, ms, stack(bias + idle, {start + 9}));
  sample(1, bias + work, ms);
  sample(1, bias + idle, ms);
  sample(1, bias + lone, ms);
  const std::vector<std::string> lines = lines_of(run());
  EXPECT_THAT(std::vector<std::string>(lines.end() - 3, lines.end()),
              ElementsAre("1 alike 1x1000000 hot<work<feed", "1 unknown 1x1000000 idle", "1 unknown 1x1000000 lone"));
}

TEST_F(WeightedStacksTest, OwnStacksAloneOnRequest) {
  sample(0, bias + work, ms, stack(bias + work, {feed + 5}));
  sample(0, bias + work, 2 * ms);
  EXPECT_THAT(lines_of(run(false)), ElementsAre("0 unknown 1x2000000 hot<work", "0 sampled 1x1000000 hot<work<feed"));
}

TEST_F(WeightedStacksTest, TheKernelIsTheInnermostFunctionByItsSystemCall) {
  static constexpr std::array<std::uint8_t, 0x20> futex = {0xb8, 202, 0, 0, 0, 0x0f, 0x05};  // mov $202, %eax; syscall
  code_.bytes[{1, 0x40}] = futex;
  function(1, 0x50, {frame("fault")});
  sample(0, library + 0x47, ms, stack(library + 0x47, {work + 4}), true);
  sample(0, library + 0x52, ms, {}, true);  // after no system call
  const WeightedStacks stacks = run();
  EXPECT_THAT(lines_of(stacks), ElementsAre("0 sampled 1x1000000 futex_[k]<copy<hot<work",
                                            "0 unknown 1x1000000 page faults and interrupts_[k]<fault"));
}

TEST_F(WeightedStacksTest, SumsAreThoseOfTheSamplesHoweverTheyAreShared) {
  for (std::uint64_t i = 0; i < 7; ++i) {
    sample(0, bias + work + 4, 1000 + i, stack(bias + work + 4, {feed + 5 + i}));
    sample(0, bias + work + 4, 10'000 + i);
    sample(0, bias + work + 9, 333 * i + 1);
  }
  const WeightedStacks stacks = run();
  std::uint64_t weight = 0;
  std::uint64_t samples = 0;
  for (const TimeStack& row : stacks.time) {
    weight += row.weight;
    samples += row.samples;
  }
  EXPECT_EQ(static_cast<double>(weight), totals_[0].ns);
  EXPECT_EQ(samples, code_totals_.size());
}

TEST_F(WeightedStacksTest, TimeWithoutSamplesIsThere) {
  sample(0, bias + work, ms);
  cpu_s_ = {0.003, 0.004};
  EXPECT_THAT(lines_of(run()), ElementsAre("0 unknown 1x1000000 hot<work", "0 unknown 0x2000000 [not sampled]",
                                           "1 unknown 0x4000000 [not sampled]"));
}

TEST_F(WeightedStacksTest, SamplesOfBriefThreadsStandForOthers) {
  const auto summary = [](double cpu_s) {
    ThreadSummary thread;
    thread.cpu_s = cpu_s;
    return thread;
  };
  const std::vector<ThreadSummary> threads = {summary(0.001), summary(0.002), summary(0.002)};
  std::vector<ThreadTotal> totals(3);
  totals[0].ns = 4 * ms;  // more than the thread had
  EXPECT_THAT(unsampled_ns(threads, totals), ElementsAre(0, 500'000, 500'000));
  totals[0].ns = 6 * ms;
  EXPECT_THAT(unsampled_ns(threads, totals), ElementsAre(0, 0, 0));
}

TEST_F(WeightedStacksTest, FilesHaveTheirLoadedPartTheProgramsFirst) {
  code_.segments[{0, 0}] = {0x40, 0x1f80, 0x1040};
  sample(0, library + 0x41, ms);
  sample(0, bias + work, ms);
  sample(0, 0x77, ms);  // in no file
  const WeightedStacks stacks = run();
  ASSERT_EQ(stacks.files.size(), 2U);
  EXPECT_EQ(stacks.files[0].path, "/bin/app");
  EXPECT_EQ(stacks.files[0].begin, bias);
  EXPECT_EQ(stacks.files[0].end, bias + 0x2000);
  EXPECT_EQ(stacks.files[0].file_offset, 0x1000U);
  EXPECT_EQ(stacks.files[1].path, "/usr/lib/libc.so.6");
  EXPECT_EQ(stacks.files[1].end, library + 0x10000);
  ASSERT_EQ(stacks.places.size(), 3U);
  EXPECT_EQ(stacks.places[0].file, 0U);
  EXPECT_EQ(stacks.places[0].address, bias + work);
  EXPECT_EQ(stacks.places[0].function_line, 21U);
  EXPECT_EQ(stacks.places[1].file, 1U);
  EXPECT_EQ(stacks.places[2].file, StackPlace::no_file);
  EXPECT_EQ(stacks.places[2].frames[0].function, "[unknown]");
}

TEST_F(WeightedStacksTest, CostHasItsStackPartnerAndObject) {
  communicate(bias + work, 0.5, stack(bias + work, {feed + 5}));
  communicate(bias + work, 0.25, {}, true);
  communicate(bias + work, 0.125, {}, false);
  communicate(bias + work, 1, {}, true, 1);  // with itself
  const WeightedStacks stacks = run();
  ASSERT_EQ(stacks.communication.size(), 3U);
  double cost_s = 0;
  for (const CommunicationStack& row : stacks.communication) {
    EXPECT_EQ(row.thread, 1U);
    EXPECT_EQ(row.producer, 0U);
    EXPECT_EQ(stacks.objects[row.object], "counters");
    EXPECT_EQ(text_of(stacks, row.places), "hot<work<feed");
    EXPECT_FALSE(row.gain_known);
    cost_s += row.cost_s;
  }
  EXPECT_DOUBLE_EQ(cost_s, 0.875);
  EXPECT_EQ(std::count_if(stacks.communication.begin(), stacks.communication.end(),
                          [](const auto& row) { return row.callers == CallersFrom::sample; }),
            1);
}

TEST_F(WeightedStacksTest, CostTakesTheCallersOfSamplesIfNoAccessHasThem) {
  sample(1, bias + work, ms, stack(bias + work, {start + 9}));
  communicate(bias + work, 0.5);
  const WeightedStacks stacks = run();
  ASSERT_EQ(stacks.communication.size(), 1U);
  EXPECT_EQ(text_of(stacks, stacks.communication[0].places), "hot<work<start");
  EXPECT_EQ(stacks.communication[0].callers, CallersFrom::alike);
}

TEST_F(WeightedStacksTest, GainIsThatOfSortsWhoseGainIsKnown) {
  expansion_.gains = {{0.2, 0.6, 0.5}, {0.2, 0.6, std::nullopt}};
  communication_.true_sharing.gain_s = 0.1;
  communicate(bias + work, 1);
  communicate(bias + feed, 1);
  communicate(bias + idle, 1, {}, false);
  contributions_[1].gain = 1;
  const WeightedStacks stacks = run();
  ASSERT_EQ(stacks.communication.size(), 3U);
  EXPECT_DOUBLE_EQ(stacks.communication[0].gain_s, 0.5);
  EXPECT_DOUBLE_EQ(stacks.communication[1].gain_s, 0.4) << "the middle of its bounds, as in sums of the report";
  EXPECT_EQ(stacks.communication[2].gain_s, 0);
  EXPECT_TRUE(stacks.communication[0].gain_known);
  EXPECT_FALSE(stacks.communication[2].gain_known);
}

TEST_F(WeightedStacksTest, UnknownCostIsNotThere) {
  communicate(bias + work, 1);
  expansion_.unknown = "too few watches";
  EXPECT_THAT(run().communication, IsEmpty());
}

TEST(Split, KeepsTheSum) {
  EXPECT_THAT(split(10, {1, 1, 1}), ElementsAre(4, 3, 3));
  EXPECT_THAT(split(2, {1, 3, 4}), ElementsAre(0, 1, 1));
  EXPECT_THAT(split(0, {1, 2}), ElementsAre(0, 0));
  EXPECT_THAT(split(5, {}), IsEmpty());
  const std::uint64_t large = (std::uint64_t{1} << 62U) - 1;
  const auto parts = split(large, {1, 1e-9, 3.7});
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::uint64_t{0}), large);
}

TEST(Split, WholeNumbersStayInRange) {
  EXPECT_EQ(whole(2.5), 3U);
  EXPECT_EQ(whole(-1), 0U);
  EXPECT_EQ(whole(1e30), std::uint64_t{1} << 62U);
}

}  // namespace
}  // namespace crosstalk::attribution::test::weighted_stacks_test
