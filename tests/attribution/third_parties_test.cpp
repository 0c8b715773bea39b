// SPDX-License-Identifier: Apache-2.0
// Three threads that take turns on words of their own of one line, seen by watches of two words.
#include "attribution/timeline/third_parties.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::third_parties_test {
namespace {

constexpr float named = 0.75F + 0.25F / 7;
constexpr float unlikely = 0.25F / 7;

AccessPoint store_at(std::uint32_t thread, std::uint32_t word, std::uint64_t at = line) {
  AccessPoint point;
  point.thread = ThreadId{thread};
  point.kind = AccessKind::load_store;
  point.line = at;
  point.bytes = LineBytes::range(std::int64_t{word} * 8, 8);
  point.instruction = 0x1000 + thread;
  return point;
}

profile::SampleRow sampled_store(std::uint32_t thread, std::uint32_t word, std::uint64_t at = line) {
  profile::SampleRow row;
  row.thread = ThreadId{thread};
  row.address = at + std::uint64_t{word} * 8;
  row.width = 8;
  row.access = AccessKind::load_store;
  row.access_ip = 0x1000 + thread;
  row.time_ns = 50;
  return row;
}

/// Thread t stores to word t. Watches are of thread 1's samples and draw another thread's word.
class ThirdParties : public testing::Test {
 protected:
  void watch(std::uint32_t drawn, float probability, std::vector<SeenCommunication> seen) {
    profile::WatchRow row;
    row.thread = ThreadId{1};
    row.line = line;
    row.words = {word_at(8), word_at(static_cast<std::uint8_t>(drawn * 8), 8, probability)};
    watches_.push_back(row);
    OwnershipTimeline timeline;
    timeline.communications = std::move(seen);
    timelines_.push_back(std::move(timeline));
  }
  static SeenCommunication seen(std::uint32_t producer, WordMask changed, float probability = named) {
    SeenCommunication result{store_at(producer, producer), store_at(1, 1)};
    result.weight = 1 / double{probability};
    result.changed = changed;
    return result;
  }
  void run(const std::vector<profile::SampleRow>& samples) {
    LineStores stores(timelines_, threads_);
    for (const auto& sample : samples) {
      stores.add(sample);
    }
    find_producers(watches_, timelines_, stores, threads_);
  }
  /// Share of `producer` in the communications of timeline `i`.
  [[nodiscard]] double share(std::size_t i, std::uint32_t producer) const {
    double sum = 0;
    for (const SeenCommunication& one : timelines_[i].communications) {
      sum += one.producer.thread.value == producer ? one.share : 0;
    }
    return sum;
  }

  std::vector<profile::ThreadRow> threads_ = make_threads(5);
  std::vector<profile::WatchRow> watches_;
  std::vector<OwnershipTimeline> timelines_;
};

const std::vector<profile::SampleRow> three = {sampled_store(0, 0), sampled_store(1, 1), sampled_store(2, 2)};

TEST_F(ThirdParties, WhoStoredInBetweenIsTheProducer) {
  watch(0, named, {seen(0, 0b110)});  // words 1, the consumer's own, and 2
  run(three);
  ASSERT_EQ(timelines_[0].communications.size(), 1U);
  const SeenCommunication& found = timelines_[0].communications[0];
  EXPECT_EQ(found.producer.thread, ThreadId{2});
  EXPECT_EQ(found.producer.instruction, 0x1002U);
  EXPECT_EQ(found.producer.line, line);
  EXPECT_FALSE(found.true_sharing);
  EXPECT_EQ(found.share, 1);
  // Either of two words would have found it.
  EXPECT_NEAR(found.weight, 1 / (double{named} + (1 - double{named}) / 6), 1e-6);
}

TEST_F(ThirdParties, WhoIsSeenStaysWhereNobodyElseStored) {
  watch(2, unlikely, {seen(2, 0b010, unlikely)});
  run(three);
  ASSERT_EQ(timelines_[0].communications.size(), 1U);
  EXPECT_EQ(timelines_[0].communications[0].producer.thread, ThreadId{2});
  EXPECT_NEAR(timelines_[0].communications[0].weight, 1 / double{unlikely}, 1e-3);
}

TEST_F(ThirdParties, AnUnlikelyDrawSaysThatAnotherWordWasNamed) {
  watch(2, unlikely, {seen(2, 0b010, unlikely), seen(2, 0b011, unlikely)});
  run(three);
  EXPECT_NEAR(timelines_[0].communications.at(0).weight, 1 / (1 - 6 * double{unlikely} + double{unlikely}), 1e-3);
}

TEST_F(ThirdParties, ItsOwnFurtherStoresDoNotMakeAThreadAThirdOne) {
  watch(0, named, {seen(0, 0b1010)});
  run({sampled_store(0, 0), sampled_store(0, 3), sampled_store(1, 1)});
  EXPECT_EQ(share(0, 0), 1);
}

TEST_F(ThirdParties, AWordThatNobodyIsKnownToStoreToSaysNothing) {
  watch(0, named, {seen(0, 0b11110010)});
  run(three);
  EXPECT_EQ(share(0, 0), 1);
}

TEST_F(ThirdParties, AWordThatTheConsumerMayHaveStoredToSaysNothing) {
  watch(0, named, {seen(0, 0b100)});
  run({sampled_store(0, 0), sampled_store(1, 2), sampled_store(2, 2)});
  EXPECT_EQ(share(0, 0), 1);
}

TEST_F(ThirdParties, NeighboursOnThePageTellWhoseAWordIs) {
  watch(0, named, {seen(0, 0b100)});
  run({sampled_store(0, 0), sampled_store(1, 1), sampled_store(2, 2, line + 0x440),
       sampled_store(3, 2, line + 0x1000)});
  EXPECT_EQ(share(0, 2), 1);
}

TEST_F(ThirdParties, SeveralShareByWhatIsKnownOfTheOthers) {
  watch(3, named, {seen(3, 0b0001)});  // 0 alone, three times
  watch(3, named, {seen(3, 0b0001)});
  watch(3, named, {seen(3, 0b0001)});
  watch(3, named, {seen(3, 0b0100)});  // 2 alone
  watch(3, named, {seen(3, 0b0101)});  // 0 or 2
  run({sampled_store(0, 0), sampled_store(1, 1), sampled_store(2, 2), sampled_store(3, 3)});
  EXPECT_NEAR(share(4, 0), 0.75, 0.05);
  EXPECT_NEAR(share(4, 2), 0.25, 0.05);
  EXPECT_NEAR(share(4, 0) + share(4, 2), 1, 1e-12);
  EXPECT_EQ(share(4, 3), 0);
  EXPECT_TRUE(timelines_[4].interrupted.empty());
}

TEST_F(ThirdParties, WhereNothingTellsThemApartNobodyIsNamed) {
  watch(3, named, {seen(3, 0b0101)});
  run({sampled_store(0, 0), sampled_store(1, 1), sampled_store(2, 2), sampled_store(3, 3)});
  EXPECT_TRUE(timelines_[0].communications.empty());
  EXPECT_EQ(timelines_[0].interrupted.size(), 1U);
}

TEST_F(ThirdParties, AProducerThatMayHaveStoredAgainStaysWhereNothingTells) {
  watch(3, named, {seen(3, 0b1101)});
  run({sampled_store(0, 0), sampled_store(1, 1), sampled_store(2, 2), sampled_store(3, 3)});
  EXPECT_EQ(share(0, 3), 1);
}

TEST_F(ThirdParties, StoresThatTrapsSawAreKnown) {
  watch(0, named, {seen(0, 0b100)});
  watch(2, named, {});
  timelines_[1].accesses = {store_at(2, 2)};
  run({});
  EXPECT_EQ(share(0, 2), 1);
}

TEST_F(ThirdParties, AWordThatIsWatchedNamesNobodyElse) {
  watch(0, named, {seen(0, 0b001)});
  run({sampled_store(1, 1), sampled_store(2, 0)});  // 0 is not known to store there
  EXPECT_EQ(share(0, 0), 1);
}

TEST_F(ThirdParties, WhereMoreStoreThanAreListedAnyoneMayHave) {
  threads_ = make_threads(12);
  watch(11, named, {SeenCommunication{store_at(11, 0), store_at(1, 1)}});
  timelines_[0].communications[0].changed = 0b100;
  std::vector<profile::SampleRow> samples;
  for (std::uint32_t thread = 2; thread < 12; ++thread) {
    samples.push_back(sampled_store(thread, 2));
  }
  run(samples);
  EXPECT_EQ(share(0, 11), 1);
  EXPECT_EQ(timelines_[0].communications.size(), 1U);
}

TEST_F(ThirdParties, OtherProcessesAreNotJudgedByAThreadOfOnes) {
  threads_[0].process = ProcessId{1};
  watch(0, named, {seen(0, 0b100)});
  run(three);
  EXPECT_EQ(share(0, 0), 1);
}

TEST_F(ThirdParties, StoriesInWhichNothingElseChangedAreEvidence) {
  for (int i = 0; i < 9; ++i) {
    watch(0, named, {seen(0, 0)});
  }
  watch(3, named, {seen(3, 0b0100)});  // 2 alone
  watch(3, named, {seen(3, 0b0101)});  // 0 or 2
  run({sampled_store(0, 0), sampled_store(1, 1), sampled_store(2, 2), sampled_store(3, 3)});
  EXPECT_GT(share(10, 0), 0.85);
}

TEST_F(ThirdParties, WithoutStatesNothingChanges) {
  watch(0, named, {seen(0, 0), seen(2, 0)});
  run(three);
  EXPECT_EQ(share(0, 0), 1);
  EXPECT_EQ(share(0, 2), 1);
  EXPECT_NEAR(timelines_[0].communications[0].weight, 1 / double{named}, 1e-9);
}

/// A communication that is only expected: the consumer is the sample.
SeenCommunication expected(std::uint32_t producer, WordMask changed) {
  SeenCommunication result{store_at(producer, producer), store_at(1, 1)};
  result.consumer.sampled = true;
  result.weight = 4;
  result.changed = changed;
  return result;
}

TEST_F(ThirdParties, WhatIsExpectedIsTheFirstStorers) {
  watch(0, named, {expected(0, 0)});
  watch(0, named, {expected(0, 0b110)});  // thread 2 has stored before; word 1 is the consumer's own
  run(three);
  EXPECT_EQ(share(0, 0), 1);
  EXPECT_EQ(timelines_[0].communications[0].weight, 4);
  EXPECT_TRUE(timelines_[1].communications.empty());
  EXPECT_EQ(timelines_[1].interrupted.size(), 1U);
}

TEST_F(ThirdParties, WhoStoresToTheSampledWordIsSeenByWatchesOfThat) {
  watch(0, named, {expected(0, 0)});
  run({sampled_store(0, 0), sampled_store(0, 1)});
  EXPECT_TRUE(timelines_[0].communications.empty());
  EXPECT_EQ(timelines_[0].interrupted.size(), 1U);
}

TEST(OwnershipTimeline, SaysWhichWordsChangedBetweenTwoAccesses) {
  Scene scene(3);
  scene.words({word_at(0), word_at(8)})
      .opened_by(0, AccessKind::load_store)
      .knows(rmw_ip, instruction(AccessKind::load_store));
  scene.trap(1, rmw_ip, 1).trap(0, rmw_ip, 0);
  scene.watch().state = profile::LineState{{1, 2, 3, 4, 5, 6, 7, 8}};
  scene.traps()[0].state = profile::LineState{{1, 9, 3, 4, 5, 6, 7, 9}};
  scene.traps()[1].state = profile::LineState{{2, 9, 4, 4, 5, 6, 7, 9}};
  const OwnershipTimeline timeline = scene.tell();
  ASSERT_EQ(timeline.communications.size(), 2U);
  EXPECT_EQ(timeline.communications[0].changed, 0b10000010);
  EXPECT_EQ(timeline.communications[1].changed, 0b00000101);
}

TEST(OwnershipTimeline, WithoutAStateNothingIsKnownToHaveChanged) {
  Scene scene(2);
  scene.words({word_at(0), word_at(8)})
      .opened_by(0, AccessKind::load_store)
      .knows(rmw_ip, instruction(AccessKind::load_store));
  scene.trap(1, rmw_ip, 1);
  scene.traps()[0].state = profile::LineState{{1, 9, 3, 4, 5, 6, 7, 9}};
  EXPECT_EQ(scene.tell().communications.at(0).changed, 0);
}

}  // namespace
}  // namespace crosstalk::attribution::test::third_parties_test
