// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/probe_effect.h"

#include <gtest/gtest.h>

namespace crosstalk::attribution::test::probe_effect_test {
namespace {

SeenCommunication seen(std::uint32_t producer, std::uint32_t consumer, bool true_sharing, std::uint64_t stored_ns) {
  SeenCommunication communication;
  communication.producer.thread = ThreadId{producer};
  communication.producer.time_ns = stored_ns;
  communication.consumer.thread = ThreadId{consumer};
  communication.consumer.time_ns = stored_ns + 1000;
  communication.true_sharing = true_sharing;
  return communication;
}

TEST(ProbeEffect, AFalseOneFollowedAtOnceByTheTrueOneIsDropped) {
  std::vector<SeenCommunication> all{seen(0, 1, false, 10'000), seen(0, 1, true, 20'000)};
  remove_probe_effect(all);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(all[0].true_sharing);
}

TEST(ProbeEffect, FalseSharingOfItsOwnIsKept) {
  std::vector<SeenCommunication> all{seen(0, 1, false, 10'000), seen(1, 0, false, 20'000), seen(0, 1, false, 30'000)};
  remove_probe_effect(all);
  EXPECT_EQ(all.size(), 3U);
}

TEST(ProbeEffect, OtherThreadsOrLaterStoresAreOtherHandovers) {
  std::vector<SeenCommunication> all{seen(0, 1, false, 10'000), seen(2, 1, true, 20'000), seen(0, 1, false, 30'000),
                                     seen(0, 1, true, 30'000 + longest_tear_ns)};
  remove_probe_effect(all);
  EXPECT_EQ(all.size(), 4U);
}

TEST(ProbeEffect, TheLastOneIsTornLikeItsEqualBefore) {
  std::vector<SeenCommunication> all{seen(0, 1, false, 10'000), seen(0, 1, true, 20'000), seen(1, 0, true, 30'000),
                                     seen(0, 1, false, 40'000)};
  all[0].producer.instruction = all[3].producer.instruction = 0x1000;
  all[0].consumer.instruction = all[3].consumer.instruction = 0x2000;
  auto other = all;
  other[3].producer.instruction = 0x3000;
  remove_probe_effect(all);
  EXPECT_EQ(all.size(), 2U);
  remove_probe_effect(other);
  EXPECT_EQ(other.size(), 3U);
}

TEST(WatchedStores, ArePreferredToTheSampledOne) {
  std::vector<SeenCommunication> all{seen(0, 1, true, 10'000), seen(1, 0, true, 20'000)};
  all[0].producer.sampled = true;
  prefer_watched_stores(all);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].producer.thread.value, 1U);
  all[0].producer.sampled = true;
  prefer_watched_stores(all);
  EXPECT_EQ(all.size(), 1U);
}

TEST(ProbeEffect, NothingOfNothing) {
  std::vector<SeenCommunication> none;
  remove_probe_effect(none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace crosstalk::attribution::test::probe_effect_test
