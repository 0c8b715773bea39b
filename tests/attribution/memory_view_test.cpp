// SPDX-License-Identifier: Apache-2.0
// Samples of a hardware source with a known truth, written to a profile and read back.
#include "attribution/memory/memory_view.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "attribution/memory/sampled_sharing.h"
#include "profile/writer.h"
#include "rows.h"

namespace crosstalk::attribution::test::memory_view_test {
namespace {

using profile::SourceKind;
using profile::WeightUnit;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t reads_at = 0x400100, writes_at = 0x400200, counter = 0x480000;
constexpr std::uint64_t load_l1 = PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L1) |
                                  PERF_MEM_S(SNOOP, NONE) | PERF_MEM_S(TLB, HIT) | PERF_MEM_S(TLB, L1);
constexpr std::uint64_t load_hitm =
    PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L3) | PERF_MEM_S(SNOOP, HITM);
constexpr std::uint64_t load_remote_hitm = load_hitm | PERF_MEM_S(REMOTE, REMOTE);
constexpr std::uint64_t load_untold = PERF_MEM_S(OP, LOAD) | PERF_MEM_S(LVL, NA) | PERF_MEM_S(SNOOP, NA);
constexpr std::uint64_t store_hit = PERF_MEM_S(OP, STORE) | PERF_MEM_S(LVL, HIT) | PERF_MEM_S(LVL, L1);
constexpr std::uint64_t store_miss = PERF_MEM_S(OP, STORE) | PERF_MEM_S(LVL, MISS) | PERF_MEM_S(LVL, L1);

class MemoryViewTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("memory_") + testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
               std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    auto writer = profile::ProfileWriter::create((folder_ / "p.db").string());
    ASSERT_TRUE(writer);
    writer_.emplace(std::move(*writer));
    session_.source = profile::imported_source;
    session_.core.cycle_ps = 500;
    session_.topology = "0 0 0 0 0 0;1 1 0 1 0 0;2 0 1 2 2 1";
    code_.locations[{0, reads_at}].frames = {frame("reader", "a.cpp", 10)};
    code_.locations[{0, writes_at}].frames = {frame("writer", "a.cpp", 20)};
    code_.locations[{0, 0x400300}].frames = {frame("main", "a.cpp", 30)};
    code_.globals = {{0, {"counter", counter, 64, {}}}};
    code_.fields = {{8, "hits"}};
    symbolizer::FunctionLoops& loops = code_.functions[{0, reads_at}];
    loops.function_begin = reads_at;
    loops.loops.emplace_back();
    loops.loops[0].header = reads_at;
    loops.ranges = {{reads_at, reads_at + 0x10, 0}};
    loop_.id = 7;
    loop_.header = reads_at;
    loop_.function = "reader";
    loop_.line_begin = 9;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  template <class Row>
  void put(const Row& row) {
    const auto result = writer_->put(row);
    ASSERT_TRUE(result) << result.error().message;
  }

  struct Access {
    std::uint32_t thread = 0;
    std::uint64_t time_ns = 0, source = 0, offset = 8;
    std::uint32_t latency = 0;
    std::uint64_t weight = 1000;
    std::uint16_t cpu = 0;
  };
  void put(const Access& access) {
    const bool stores = (access.source & PERF_MEM_S(OP, STORE)) != 0;
    profile::SampleRow row;
    row.thread = ThreadId{access.thread};
    row.time_ns = access.time_ns;
    row.ip = row.access_ip = stores ? writes_at : reads_at;
    row.address = counter + access.offset;
    row.access = stores ? AccessKind::store : AccessKind::load;
    row.from = profile::AddressFrom::hardware;
    row.cpu = access.cpu;
    row.measurement = {SourceKind::pebs, unit_, access.latency, access.weight, access.source};
    row.event = profile::EventId{stores ? 2U : 1U};
    row.call_chain = chain_;
    put(row);
  }

  [[nodiscard]] Memory view(std::uint32_t threads, std::size_t max_rows = 100) {
    session_.end_ns = 1'000'000 * ms;
    put(session_);
    put(profile::ProcessRow{});
    for (const profile::ThreadRow& row : make_threads(threads)) {
      put(row);
    }
    put(profile::EventRow{profile::EventId{1}, "loads", SourceKind::pebs, unit_, 1000, 30, true});
    put(profile::EventRow{profile::EventId{2}, "stores", SourceKind::pebs, unit_, 1000, 0, false});
    put(module_row("/bin/a", 0x400000, 0x500000, 0));
    EXPECT_TRUE(writer_->finish());
    const auto reader = profile::ProfileReader::open((folder_ / "p.db").string());
    EXPECT_TRUE(reader) << reader.error().message;
    const AddressSpaces spaces(reader->processes(), reader->modules());
    const ProgramView program(reader->processes(), reader->threads(), spaces, code_);
    const BlockIndex blocks(reader->blocks());
    const SharedIndex shared(reader->shared_mappings());
    const StackTable stacks;
    DataObjects objects(program, blocks, shared, stacks);
    MemorySamples samples;
    EXPECT_TRUE(reader->for_each_sample([&](const profile::SampleRow& row) { samples.add(row); }));
    auto memory = memory_view({*reader, program, objects, shared, std::span(&loop_, 1), samples}, max_rows);
    EXPECT_TRUE(memory);
    return memory ? std::move(*memory) : Memory{};
  }

  std::filesystem::path folder_;
  std::optional<profile::ProfileWriter> writer_;
  profile::Session session_;
  FakeCode code_;
  LoopRow loop_;
  WeightUnit unit_ = WeightUnit::accesses;
  profile::CallChainId chain_;
};

const SampledPair* pair_of(const Memory& memory, std::uint32_t producer, std::uint32_t consumer) {
  const auto found =
      std::find_if(memory.sharing.pairs.begin(), memory.sharing.pairs.end(),
                   [&](const SampledPair& pair) { return pair.producer == producer && pair.consumer == consumer; });
  return found == memory.sharing.pairs.end() ? nullptr : &*found;
}

bool any_limit(const Memory& memory, const char* words) {
  return std::any_of(memory.limits.begin(), memory.limits.end(),
                     [&](const std::string& limit) { return limit.find(words) != std::string::npos; });
}

TEST_F(MemoryViewTest, OneWriterAndTwoReaders) {
  chain_ = profile::CallChainId{1};
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::uint64_t at = (i + 1) * ms;
    put(Access{0, at, i % 4 == 0 ? store_miss : store_hit, 8, 0, 500, 0});
    put(Access{1, at + ms / 3, load_hitm, 8, static_cast<std::uint32_t>(200 + i), 1000, 1});
    if (i % 10 == 0) {
      put(Access{2, at + ms / 2, load_remote_hitm, 16, 600, 1000, 2});
    }
    if (i % 2 == 0) {
      put(Access{0, at + ms / 4, load_l1, 8, 5, 1000, 0});
    }
  }
  put(profile::CallChainRow{chain_, {reads_at, 0x400311}});
  const Memory memory = view(3);
  EXPECT_EQ(memory.unknown, "");
  EXPECT_EQ(memory.totals.samples, 260U);
  EXPECT_EQ(memory.totals.loads, 160U);
  EXPECT_EQ(memory.totals.stores, 100U);
  EXPECT_EQ(memory.totals.store_hits, 75U);
  EXPECT_EQ(memory.totals.store_misses, 25U);
  EXPECT_EQ(memory.totals.hitm_local, 100U);
  EXPECT_EQ(memory.totals.hitm_remote, 10U);
  EXPECT_EQ(memory.totals.hitm, 110'000.0);
  EXPECT_EQ(memory.totals.translation[static_cast<std::size_t>(Translation::l1)], 50U);
  const double cycles = 1000.0 * (50 * 5 + 10 * 600 + 100 * 200 + 99 * 50);
  EXPECT_DOUBLE_EQ(memory.totals.cost_cycles.value_or(0), cycles);
  EXPECT_DOUBLE_EQ(memory.totals.cost_s.value_or(0), cycles * 500e-12);

  ASSERT_EQ(memory.sources.size(), 3U);
  EXPECT_EQ(memory.sources[0].level, MemoryLevel::l1);
  EXPECT_EQ(memory.sources[1].level, MemoryLevel::l3);
  EXPECT_EQ(memory.sources[1].samples, 100U);
  EXPECT_EQ(memory.sources[1].latency->median, 249.0);
  EXPECT_EQ(memory.sources[1].latency->p90, 289.0);
  EXPECT_EQ(memory.sources[2].level, MemoryLevel::remote_cache);

  ASSERT_EQ(memory.lines.size(), 2U);
  EXPECT_EQ(memory.lines[0].function, "reader");
  EXPECT_EQ(memory.lines[0].line, 10U);
  EXPECT_EQ(memory.lines[0].figures.loads, 160U);
  ASSERT_EQ(memory.lines[0].call_paths.size(), 1U);
  ASSERT_EQ(memory.lines[0].call_paths[0].frames.size(), 2U);
  EXPECT_EQ(memory.lines[0].call_paths[0].frames[1].function, "main");
  EXPECT_DOUBLE_EQ(memory.lines[0].call_paths[0].weight, 1);
  EXPECT_FALSE(memory.lines[1].figures.cost_cycles) << "stores have no latency";
  ASSERT_EQ(memory.objects.size(), 1U);
  EXPECT_EQ(memory.objects[0].name, "counter");
  ASSERT_EQ(memory.loops.size(), 1U);
  EXPECT_EQ(memory.loops[0].id, 7U);
  EXPECT_EQ(memory.loops[0].figures.samples, 160U);

  ASSERT_EQ(memory.shared_lines.size(), 1U);
  const SharedLine& line = memory.shared_lines[0];
  EXPECT_EQ(line.address, counter);
  EXPECT_EQ(line.object, "counter");
  EXPECT_EQ(line.threads, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(line.nodes, (std::vector<std::int32_t>{0, 1}));
  EXPECT_DOUBLE_EQ(line.hitm_share, 1);
  ASSERT_EQ(line.offsets.size(), 3U);
  EXPECT_EQ(line.offsets[0].offset, 8U);
  EXPECT_EQ(line.offsets[0].field, "hits");
  EXPECT_EQ(line.offsets[0].function, "reader");
  EXPECT_EQ(line.offsets[0].threads, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(line.offsets[0].hitm_local_latency, 249.0);
  EXPECT_EQ(line.offsets[0].other_latency, 5.0);
  EXPECT_EQ(line.offsets[0].processors, 2U);
  EXPECT_EQ(line.offsets[1].offset, 16U);
  EXPECT_EQ(line.offsets[1].hitm_remote_latency, 600.0);
  EXPECT_EQ(line.offsets[2].figures.store_misses, 25U);

  ASSERT_EQ(memory.sharing.pairs.size(), 2U);
  const SampledPair* near = pair_of(memory, 0, 1);
  ASSERT_NE(near, nullptr);
  EXPECT_DOUBLE_EQ(near->hitm.value_or(0), 100'000);
  EXPECT_DOUBLE_EQ(near->overlapping_samples, 100);
  ASSERT_TRUE(near->hitm_ci95);
  EXPECT_LT(near->hitm_ci95->front(), 90'000);
  EXPECT_GT(near->hitm_ci95->back(), 110'000);
  const SampledPair* far = pair_of(memory, 0, 2);
  ASSERT_NE(far, nullptr);
  EXPECT_DOUBLE_EQ(far->hitm_remote_samples, 10);
  EXPECT_DOUBLE_EQ(far->overlapping_samples, 0);
  EXPECT_DOUBLE_EQ(far->possible_samples, 0);
  EXPECT_EQ(memory.sharing.unattributed_samples, 0U);
  EXPECT_TRUE(any_limit(memory, "30 cycles and more"));
  EXPECT_TRUE(any_limit(memory, "samples of stores are not precise"));
  EXPECT_TRUE(any_limit(memory, "nobody saw which store"));
}

TEST_F(MemoryViewTest, AModifiedLineWithoutAStoreNearIsNobodys) {
  put(Access{0, 1 * ms, store_hit});
  put(Access{1, 1 * ms + sharing_window_ns, load_hitm});
  put(Access{1, 2 * ms + sharing_window_ns, load_hitm});
  const Memory memory = view(2);
  EXPECT_EQ(memory.sharing.hitm_samples, 2U);
  EXPECT_EQ(memory.sharing.unattributed_samples, 1U);
  EXPECT_EQ(memory.sharing.unattributed_hitm, 1000.0);
  ASSERT_EQ(memory.sharing.pairs.size(), 1U);
  EXPECT_DOUBLE_EQ(memory.sharing.pairs[0].hitm_samples, 1);
}

TEST_F(MemoryViewTest, ALoadIsSharedOutAsStoresAreSampled) {
  for (const std::uint64_t at : {1, 2, 3}) {
    put(Access{0, at * ms, store_hit});
  }
  put(Access{1, 4 * ms, store_hit});
  put(Access{2, 5 * ms, load_hitm, 8, 0, 4000});
  put(Access{2, 5 * ms + 1, load_l1});
  const Memory memory = view(3);
  ASSERT_EQ(memory.sharing.pairs.size(), 2U);
  EXPECT_DOUBLE_EQ(pair_of(memory, 0, 2)->hitm.value_or(0), 3000);
  EXPECT_DOUBLE_EQ(pair_of(memory, 1, 2)->hitm.value_or(0), 1000);
}

TEST_F(MemoryViewTest, WhatIsNotToldIsPossibleAndNeverCounted) {
  for (std::uint64_t i = 1; i <= 20; ++i) {
    put(Access{0, i * ms, PERF_MEM_S(OP, STORE)});
    put(Access{1, i * ms + 1, load_untold});
  }
  const Memory memory = view(2);
  EXPECT_FALSE(memory.sharing.hitm_known);
  EXPECT_FALSE(memory.totals.tells_hitm());
  EXPECT_FALSE(memory.totals.hitm);
  ASSERT_EQ(memory.sharing.pairs.size(), 1U);
  EXPECT_FALSE(memory.sharing.pairs[0].hitm);
  EXPECT_DOUBLE_EQ(memory.sharing.pairs[0].hitm_samples, 0);
  EXPECT_DOUBLE_EQ(memory.sharing.pairs[0].possible_samples, 20);
  EXPECT_TRUE(any_limit(memory, "do not tell whether a line was modified"));
  ASSERT_EQ(memory.shared_lines.size(), 1U);
}

TEST_F(MemoryViewTest, OccurrencesAreNoAccesses) {
  unit_ = WeightUnit::occurrences;
  put(Access{0, 1 * ms, store_hit});
  put(Access{1, 2 * ms, load_hitm, 8, 300});
  const Memory memory = view(2);
  EXPECT_FALSE(memory.totals.accesses);
  EXPECT_FALSE(memory.totals.cost_cycles);
  EXPECT_TRUE(memory.totals.latency);
  ASSERT_EQ(memory.sharing.pairs.size(), 1U);
  EXPECT_FALSE(memory.sharing.pairs[0].hitm);
  EXPECT_DOUBLE_EQ(memory.sharing.pairs[0].hitm_samples, 1);
}

TEST_F(MemoryViewTest, LinesOfOneThreadAndReadLinesAreNotShared) {
  put(Access{0, 1 * ms, store_hit, 0});
  put(Access{0, 2 * ms, load_l1, 8});
  put(Access{0, 3 * ms, load_l1, 64});
  put(Access{1, 4 * ms, load_l1, 64});
  const Memory memory = view(2);
  EXPECT_TRUE(memory.shared_lines.empty());
  EXPECT_TRUE(memory.sharing.pairs.empty());
}

TEST_F(MemoryViewTest, RowsAreCutAndCounted) {
  for (std::uint64_t i = 0; i < 5; ++i) {
    put(Access{0, (i + 1) * ms, store_hit, 64 * i});
    for (std::uint64_t more = 0; more <= i; ++more) {
      put(Access{1, (i + 1) * ms + 1 + more, load_hitm, 64 * i});
    }
  }
  const Memory memory = view(2, 2);
  EXPECT_EQ(memory.all_shared_lines, 5U);
  ASSERT_EQ(memory.shared_lines.size(), 2U);
  EXPECT_EQ(memory.shared_lines[0].figures.hitm_local, 5U) << "most first";
  EXPECT_EQ(memory.shared_lines[1].figures.hitm_local, 4U);
  EXPECT_EQ(memory.on_shared_lines.hitm_local, 15U) << "all of them";
  EXPECT_NEAR(memory.shared_lines[0].hitm_share, 5.0 / 15, 1e-9);
}

TEST_F(MemoryViewTest, AClockTellsNothing) {
  profile::SampleRow row;
  row.address = counter;
  row.access = AccessKind::load;
  put(row);
  EXPECT_NE(view(1).unknown, "");
}

/// Three threads pass a line on in random order; each access is sampled with a probability of one in `period`.
TEST_F(MemoryViewTest, EstimatesAgreeWithTheTruthOfAProgramThatIsSampled) {
  constexpr std::uint64_t period = 20, steps = 60'000;
  std::mt19937_64 random(7);  // NOLINT: the same program each time
  std::uint64_t truth[3][3] = {};
  std::uint32_t owner = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    const auto next = static_cast<std::uint32_t>(random() % 3);
    const bool moves = next != owner;
    truth[owner][next] += moves ? 1 : 0;
    if (random() % period == 0) {
      put(Access{next, step * 1000, moves ? load_hitm : load_l1, 8, 100, period});
    }
    if (random() % period == 0) {
      put(Access{next, step * 1000 + 500, store_hit, 8, 0, period});
    }
    owner = next;
  }
  const Memory memory = view(3);
  ASSERT_EQ(memory.sharing.pairs.size(), 6U);
  double sum = 0, true_sum = 0;
  for (const SampledPair& pair : memory.sharing.pairs) {
    const auto wanted = static_cast<double>(truth[pair.producer][pair.consumer]);
    EXPECT_NEAR(pair.hitm.value_or(0), wanted, 0.2 * wanted) << pair.producer << " to " << pair.consumer;
    sum += pair.hitm.value_or(0);
    true_sum += wanted;
  }
  EXPECT_NEAR(sum, true_sum, 0.08 * true_sum);
}

}  // namespace
}  // namespace crosstalk::attribution::test::memory_view_test
