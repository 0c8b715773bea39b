// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/probe_timeline.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::attribution::probe_timeline_test {
namespace {

constexpr std::uint64_t line = 0x5000;
constexpr std::uint64_t own_code = 0x401000, others_code = 0x402000;

class Code : public SampledCode {
 public:
  std::uint64_t storing_back = 0;     // an instruction
  std::optional<LoadedValue> loaded;  // of every sample
  std::uint64_t waiting = 0;          // an instruction before the store
  std::vector<PossibleStore> behind_it;

  bool stores_back(ThreadId, std::uint64_t, std::uint64_t ip) override { return ip == storing_back; }
  std::optional<LoadedValue> last_loaded(const profile::SampleRow&) override { return loaded; }
  std::span<const PossibleStore> stores_ahead(const profile::SampleRow& sample) override {
    return sample.access_ip == waiting ? std::span<const PossibleStore>(behind_it) : std::span<const PossibleStore>();
  }
};

class Probes : public testing::Test {
 protected:
  Probes() {
    for (std::uint32_t i = 0; i < 4; ++i) {
      profile::ThreadRow thread;
      thread.id = ThreadId{i};
      thread.process = ProcessId{0};
      threads_.push_back(thread);
    }
  }

  /// A sample of thread 0 at the first word, with a probe.
  void probe(std::uint64_t changed, std::uint64_t time_ns = 1000, std::uint64_t value = 0) {
    profile::WatchRow watch;
    watch.id = WatchId{static_cast<std::uint32_t>(watches_.size()) + 1};
    watch.thread = ThreadId{0};
    watch.time_ns = time_ns;
    watch.line = line;
    watch.suspected = true;
    watch.sample_access_ip = own_code;
    watch.sample_address = line;
    watch.sample_width = 8;
    watch.sample_access = AccessKind::load;
    watch.probe = profile::ProbedLine{changed, 1000, value, 8};
    watches_.push_back(watch);
    sample(0, 0, AccessKind::load, own_code, time_ns);
  }
  void sample(std::uint32_t thread, std::uint64_t offset, AccessKind kind, std::uint64_t code,
              std::uint64_t time_ns = 5) {
    profile::SampleRow row;
    row.thread = ThreadId{thread};
    row.time_ns = time_ns;
    row.access_ip = code;
    row.address = line + offset;
    row.width = 8;
    row.access = kind;
    samples_.push_back(row);
  }
  std::vector<OwnershipTimeline> tell() {
    const SharedIndex shared(mappings_);
    ProbedLines lines(watches_, threads_, shared, code_);
    for (const profile::SampleRow& row : samples_) {
      lines.add(row);
    }
    std::vector<OwnershipTimeline> timelines(watches_.size());
    tell_probes(watches_, timelines, lines);
    return timelines;
  }

  std::vector<profile::ThreadRow> threads_;
  std::vector<profile::WatchRow> watches_;
  std::vector<profile::SampleRow> samples_;
  std::vector<profile::SharedMappingRow> mappings_;
  Code code_;
};

TEST_F(Probes, WhatDidNotChangeTellsNothing) {
  probe(0);
  sample(1, 8, AccessKind::store, others_code);
  const auto timelines = tell();
  EXPECT_TRUE(timelines[0].communications.empty());
  EXPECT_TRUE(timelines[0].interrupted.empty());
}

TEST_F(Probes, FalseSharingIsOfOtherBytesThanTheSampled) {
  probe(0xff00);
  sample(1, 8, AccessKind::store, others_code);
  sample(2, 16, AccessKind::store, others_code);
  const auto timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 1U);
  const SeenCommunication& seen = timelines[0].communications[0];
  EXPECT_EQ(seen.producer.thread, ThreadId{1});
  EXPECT_EQ(seen.producer.instruction, others_code);
  EXPECT_EQ(seen.consumer.thread, ThreadId{0});
  EXPECT_EQ(seen.consumer.instruction, own_code);
  EXPECT_FALSE(seen.true_sharing);
  EXPECT_EQ(seen.weight, 1);
}

TEST_F(Probes, TrueSharingIsOfTheSampledBytesAndSharedOutAsSampled) {
  probe(0x0f);
  sample(1, 0, AccessKind::store, others_code);
  sample(2, 0, AccessKind::store, others_code);
  sample(2, 0, AccessKind::store, others_code);
  sample(2, 0, AccessKind::store, others_code);
  const auto timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 2U);
  for (const SeenCommunication& seen : timelines[0].communications) {
    EXPECT_TRUE(seen.true_sharing);
    EXPECT_DOUBLE_EQ(seen.share, seen.producer.thread == ThreadId{1} ? 0.25 : 0.75);
  }
}

TEST_F(Probes, AThreadThatLoadsAndStoresBackHasStored) {
  code_.storing_back = others_code;
  probe(0xff00);
  sample(1, 8, AccessKind::load, others_code);
  sample(2, 8, AccessKind::load, others_code + 64);
  const auto timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 1U);
  EXPECT_EQ(timelines[0].communications[0].producer.thread, ThreadId{1});
  EXPECT_EQ(timelines[0].communications[0].producer.kind, AccessKind::load_store);
}

TEST_F(Probes, WhereNobodyElseWasSampledNobodyIsNamed) {
  probe(0xff00);
  const auto timelines = tell();
  EXPECT_TRUE(timelines[0].communications.empty());
  EXPECT_EQ(timelines[0].interrupted.size(), 1U);
}

TEST_F(Probes, WhereNobodyWasSampledTheOnlyOtherBusyThreadIsNamed) {
  constexpr std::uint64_t elsewhere = 0x100000;
  probe(0xff00);
  for (int i = 0; i < 10; ++i) {
    sample(1, elsewhere, AccessKind::load, others_code);
  }
  auto timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 1U);
  EXPECT_EQ(timelines[0].communications[0].producer.thread, ThreadId{1});
  EXPECT_EQ(timelines[0].communications[0].producer.instruction, 0U) << "where it stores is not known";
  EXPECT_FALSE(timelines[0].communications[0].true_sharing);
  sample(2, elsewhere, AccessKind::load, others_code);
  EXPECT_TRUE(tell()[0].communications.empty()) << "either may have stored";
}

TEST_F(Probes, WhereNobodyElseWasSampledItIsTheOnlyOneWhoStoresToNeighbours) {
  probe(0xff00);
  for (std::uint64_t i = 1; i <= 5; ++i) {
    sample(1, 64 * i + 8, AccessKind::store, others_code);
  }
  sample(2, 64 * 6 + 16, AccessKind::store, others_code);    // to other bytes
  sample(2, 4096 * 16 + 8, AccessKind::store, others_code);  // to another page
  sample(2, 64 * 6 + 8, AccessKind::load, others_code);
  EXPECT_TRUE(tell()[0].communications.empty()) << "5 samples are too few";
  sample(1, 64 * 6 + 8, AccessKind::store, others_code);
  auto timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 1U);
  EXPECT_EQ(timelines[0].communications[0].producer.thread, ThreadId{1});
  EXPECT_EQ(timelines[0].communications[0].producer.line, line);
  EXPECT_FALSE(timelines[0].communications[0].true_sharing);
  EXPECT_TRUE(timelines[0].interrupted.empty());
  sample(2, 64 * 7 + 8, AccessKind::store, others_code);
  EXPECT_TRUE(tell()[0].communications.empty()) << "of two threads either may have";
  sample(3, 8, AccessKind::store, others_code);
  timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 1U);
  EXPECT_EQ(timelines[0].communications[0].producer.thread, ThreadId{3}) << "the line itself says more";
}

TEST_F(Probes, AValueThatDiffersFromTheOneLoadedLastWasStored) {
  code_.loaded = LoadedValue{7, 8};
  probe(0, 1000, 7);
  probe(0, 2000, 0x107);
  sample(1, 0, AccessKind::load, others_code);
  const auto timelines = tell();
  EXPECT_TRUE(timelines[0].communications.empty());
  ASSERT_EQ(timelines[1].communications.size(), 1U);
  EXPECT_EQ(timelines[1].communications[0].producer.thread, ThreadId{1});
  EXPECT_TRUE(timelines[1].communications[0].true_sharing);
}

TEST_F(Probes, AThreadThatIsAboutToStoreIsNamedWhereNobodyWasSampledStoring) {
  code_.waiting = others_code;
  code_.behind_it = {{others_code + 16, line + 8, 8, AccessKind::store}};
  probe(0xff00);
  sample(1, 256, AccessKind::load, others_code);
  sample(2, 16, AccessKind::store, others_code + 64);
  auto timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 1U);
  EXPECT_EQ(timelines[0].communications[0].producer.thread, ThreadId{1});
  EXPECT_EQ(timelines[0].communications[0].producer.instruction, others_code + 16);
  EXPECT_FALSE(timelines[0].communications[0].true_sharing);

  sample(3, 8, AccessKind::store, others_code + 128);
  timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 1U);
  EXPECT_EQ(timelines[0].communications[0].producer.thread, ThreadId{3}) << "a store that was sampled says more";
}

TEST_F(Probes, AThreadOfAnotherProcessIsNamedWhereTheyShareTheMemory) {
  threads_[3].process = ProcessId{1};
  probe(0xff00);
  sample(3, 8, AccessKind::store, others_code);
  EXPECT_TRUE(tell()[0].communications.empty()) << "the same address of another process is other memory";

  constexpr std::uint64_t elsewhere = 0x9000;  // where the other process has mapped the same page
  mappings_ = {{ProcessId{0}, 1, line, 4096, 0, 8, 77, "/dev/shm/ours"},
               {ProcessId{1}, 1, line + elsewhere, 4096, 0, 8, 77, "/dev/shm/ours"}};
  EXPECT_TRUE(tell()[0].communications.empty()) << "still other memory";
  sample(3, elsewhere + 8, AccessKind::store, others_code);
  auto timelines = tell();
  ASSERT_EQ(timelines[0].communications.size(), 1U);
  EXPECT_EQ(timelines[0].communications[0].producer.thread, ThreadId{3});
  EXPECT_EQ(timelines[0].communications[0].producer.line, line) << "as the sampled thread's process knows it";

  mappings_[1].inode = 78;
  EXPECT_TRUE(tell()[0].communications.empty()) << "another file";
}

// Two probes of each of 30 lines at one instruction: long gaps see stores, short ones none.
TEST_F(Probes, LinesWithFewSeenStoresTakeTheRateOfTheirInstruction) {
  for (std::uint32_t i = 0; i < 60; ++i) {
    probe(i % 2 == 0 ? 0 : 0x0f, 1000 + i);
    profile::WatchRow& watch = watches_.back();
    watch.line = watch.sample_address = line + std::uint64_t{i / 2} * 64;
    watch.probe->gap_ns = i % 2 == 0 ? 1000 : 16'000;
    samples_.back().address = watch.line;
  }
  const SharedIndex shared({});
  ProbedLines lines(watches_, threads_, shared, code_);
  std::vector<OwnershipTimeline> timelines(watches_.size());
  const ProbeRates rates = tell_probes(watches_, timelines, lines);
  ASSERT_EQ(rates.rates.size(), 1U);
  EXPECT_GT(1 / rates.rates[0].detection, 1.5) << "the probes with short gaps met active partners, too";
  EXPECT_EQ(rates.of_watch[0], ProbeRates::none);
  EXPECT_EQ(rates.of_watch[1], 0U);
  EXPECT_EQ(rates.of_watch[59], 0U);
}

}  // namespace
}  // namespace crosstalk::attribution::probe_timeline_test
