// SPDX-License-Identifier: Apache-2.0
#include "attribution/timeline/ownership_timeline.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test::ownership_timeline_test {
namespace {

using profile::AddressFrom;

std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs(const OwnershipTimeline& timeline) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
  for (const auto& seen : timeline.communications) {
    result.emplace_back(seen.producer.thread.value, seen.consumer.thread.value);
  }
  return result;
}
using Pairs = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

std::size_t true_ones(const OwnershipTimeline& timeline) {
  std::size_t n = 0;
  for (const auto& seen : timeline.communications) {
    n += seen.true_sharing ? 1 : 0;
  }
  return n;
}

TEST(LineBytes, RangesAreClippedToTheLine) {
  EXPECT_EQ(LineBytes::range(0, 64).count(), 64U);
  EXPECT_EQ(LineBytes::range(-4, 8).count(), 4U);
  EXPECT_EQ(LineBytes::range(60, 8).first(), 60U);
  EXPECT_EQ(LineBytes::range(60, 8).count(), 4U);
  EXPECT_TRUE(LineBytes::range(64, 8).empty());
  EXPECT_TRUE(LineBytes::range(-8, 8).empty());
  EXPECT_TRUE(LineBytes::range(8, 0).empty());
  EXPECT_TRUE(LineBytes::range(std::numeric_limits<std::int64_t>::min(), ~0ULL).empty());
  EXPECT_TRUE(LineBytes::range(std::numeric_limits<std::int64_t>::max(), ~0ULL).empty());
  EXPECT_EQ(LineBytes::range(-100, ~0ULL).count(), 64U);
}

TEST(OwnershipTimeline, PingPongOfOneWord) {
  Scene scene = plain_scene(2);
  scene.opened_by(0, AccessKind::store);
  scene.trap(1, load_ip).trap(1, store_ip, 0, true).trap(0, load_ip).trap(0, store_ip, 0, true).trap(1, load_ip);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}, {1, 0}, {0, 1}}));
  EXPECT_EQ(true_ones(timeline), 3U);
  EXPECT_EQ(timeline.ignored, 0U);
  EXPECT_EQ(timeline.communications[0].producer.instruction, 0x400U);
  EXPECT_EQ(timeline.communications[0].consumer.instruction, load_ip - 4);
  EXPECT_DOUBLE_EQ(timeline.communications[0].weight, 1);
}

TEST(OwnershipTimeline, RingPassesFromEachToTheNext) {
  Scene scene = plain_scene(4);
  scene.opened_by(0, AccessKind::load_store);
  for (const std::uint32_t thread : {1U, 2U, 3U, 0U, 1U}) {
    scene.trap(thread, rmw_ip);
  }
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}, {1, 2}, {2, 3}, {3, 0}, {0, 1}}));
  EXPECT_EQ(true_ones(timeline), 5U);
  EXPECT_TRUE(timeline.invalidations.empty());
}

TEST(OwnershipTimeline, MigratoryReadThenWriteCountsOnceAVisit) {
  Scene scene = plain_scene(3);
  scene.opened_by(0, AccessKind::store);
  for (const std::uint32_t thread : {1U, 2U, 0U}) {
    scene.trap(thread, load_ip).trap(thread, store_ip, 0, true);
  }
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}, {1, 2}, {2, 0}}));
  EXPECT_TRUE(timeline.invalidations.empty());
}

TEST(OwnershipTimeline, OneWriterManyReaders) {
  Scene scene = plain_scene(4);
  scene.opened_by(1, AccessKind::load);
  scene.trap(0, store_ip).trap(1, load_ip).trap(2, load_ip).trap(3, load_ip).trap(2, load_ip).trap(0, store_ip);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}, {0, 2}, {0, 3}}));
  // The first store ends the sampled reader's copy, the second all three.
  ASSERT_EQ(timeline.invalidations.size(), 4U);
  EXPECT_EQ(timeline.invalidations[0].read.thread.value, 1U);
  for (const auto& seen : timeline.invalidations) {
    EXPECT_EQ(seen.store.thread.value, 0U);
  }
}

TEST(OwnershipTimeline, FalseSharingOfOwnWords) {
  Scene scene = plain_scene(2);
  scene.words({word_at(0), word_at(8, 8, 0.25F)}).opened_by(0, AccessKind::store);
  scene.trap(1, store_ip, 1).trap(0, store_ip, 0).trap(1, rmw_ip, 1);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}, {1, 0}, {0, 1}}));
  EXPECT_EQ(true_ones(timeline), 0U);
  for (const auto& seen : timeline.communications) {
    EXPECT_DOUBLE_EQ(seen.weight, 4);  // the second word had to be drawn
  }
}

TEST(OwnershipTimeline, AdjacentCountersInOneWordAreFalseSharing) {
  constexpr std::uint64_t first = 0x5004, second = 0x5008;
  Scene scene = plain_scene(2);
  scene.knows(first, absolute(AccessKind::load_store, line, 4));
  scene.knows(second, absolute(AccessKind::load_store, line + 4, 4));
  scene.opened_by(0, AccessKind::load_store, AddressFrom::retired, 0, 4);
  scene.trap(1, second).trap(0, first).trap(1, second);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(timeline.communications.size(), 3U);
  EXPECT_EQ(true_ones(timeline), 0U);
  EXPECT_EQ(timeline.accesses[1].bytes, LineBytes::range(4, 4));
}

TEST(OwnershipTimeline, ReadOnlySharingIsNoCommunication) {
  Scene scene = plain_scene(3);
  scene.opened_by(0, AccessKind::load);
  scene.trap(1, load_ip).trap(2, load_ip).trap(0, load_ip).trap(1, load_ip);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_TRUE(timeline.communications.empty());
  EXPECT_TRUE(timeline.invalidations.empty());
  EXPECT_EQ(timeline.accesses.size(), 5U);
}

TEST(OwnershipTimeline, OwnAccessesAreNoCommunication) {
  Scene scene = plain_scene(2);
  scene.opened_by(0, AccessKind::store).trap(0, load_ip).trap(0, store_ip).trap(0, load_ip);
  EXPECT_TRUE(scene.tell().communications.empty());
}

TEST(OwnershipTimeline, TheOpeningSampleAloneProvesNothing) {
  Scene scene = plain_scene(2);
  EXPECT_TRUE(scene.opened_by(0, AccessKind::store).tell().communications.empty());
}

TEST(OwnershipTimeline, AnAccessToComeCountsWhenItsTrapConfirmsIt) {
  Scene unconfirmed = plain_scene(2);
  unconfirmed.opened_by(0, AccessKind::store, AddressFrom::next).trap(1, load_ip);
  EXPECT_TRUE(unconfirmed.tell().communications.empty());
  Scene confirmed = plain_scene(2);
  confirmed.opened_by(0, AccessKind::store, AddressFrom::next).trap(0, store_ip).trap(1, load_ip);
  EXPECT_EQ(pairs(confirmed.tell()), (Pairs{{0, 1}}));
}

TEST(OwnershipTimeline, HardwareSamplesHaveExecuted) {
  Scene scene = plain_scene(2);
  scene.opened_by(0, AccessKind::store, AddressFrom::hardware).trap(1, load_ip);
  EXPECT_EQ(pairs(scene.tell()), (Pairs{{0, 1}}));
}

TEST(OwnershipTimeline, SampledWithoutAddressSourceIsNoAccess) {
  Scene scene = plain_scene(2);
  scene.opened_by(0, AccessKind::store, AddressFrom::none).trap(1, load_ip);
  EXPECT_TRUE(scene.tell().communications.empty());
}

TEST(OwnershipTimeline, SecondAccessAfterOneStoreIsNoSecondCommunication) {
  Scene scene = plain_scene(2);
  scene.words({word_at(0), word_at(8)}).opened_by(1, AccessKind::load);
  scene.trap(0, store_ip, 0).trap(1, load_ip, 1).trap(1, load_ip, 0);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}}));
  EXPECT_EQ(true_ones(timeline), 0U);  // by its first access
}

TEST(OwnershipTimeline, WhatAnOpeningRunStoredUnseenIsToldByWhatTheConsumerGoesOnTo) {
  // Thread 0 was sampled in the middle of a line that it fills from the start: word 8 was stored before the watch.
  Scene scene = plain_scene(2);
  scene.words({word_at(8), word_at(0)}).opened_by(0, AccessKind::store, AddressFrom::retired, 8);
  scene.trap(1, load_ip, 1).trap(1, load_ip, 0);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}}));
  EXPECT_EQ(true_ones(timeline), 1U);
  EXPECT_EQ(timeline.communications[0].consumer.bytes, LineBytes::range(0, 8));  // still its first access
}

TEST(OwnershipTimeline, AnotherThreadsAccessEndsWhatTheConsumerGoesOnTo) {
  Scene scene = plain_scene(3);
  scene.words({word_at(8), word_at(0)}).opened_by(0, AccessKind::store, AddressFrom::retired, 8);
  scene.trap(1, load_ip, 1).trap(2, load_ip, 1).trap(1, load_ip, 0);
  EXPECT_EQ(true_ones(scene.tell()), 0U);
}

TEST(OwnershipTimeline, ARunsStoresAreTakenTogether) {
  Scene scene = plain_scene(2);
  scene.words({word_at(0), word_at(8)}).opened_by(1, AccessKind::load);
  scene.trap(0, store_ip, 0).trap(0, store_ip, 1).trap(1, load_ip, 0);
  const OwnershipTimeline timeline = scene.tell();
  ASSERT_EQ(pairs(timeline), (Pairs{{0, 1}}));
  EXPECT_TRUE(timeline.communications[0].true_sharing);  // by the run's first store, not by its last
  EXPECT_EQ(timeline.communications[0].producer.bytes, LineBytes::range(0, 8));
}

TEST(OwnershipTimeline, StoresThatTheConsumerHasSeenDoNotMakeTrueSharing) {
  Scene scene = plain_scene(2);
  scene.words({word_at(0), word_at(8)}).opened_by(0, AccessKind::store);  // word 0, seen by thread 1 next
  scene.trap(1, load_ip, 0).trap(0, store_ip, 1).trap(1, load_ip, 0);
  const OwnershipTimeline timeline = scene.tell();
  ASSERT_EQ(timeline.communications.size(), 2U);
  EXPECT_TRUE(timeline.communications[0].true_sharing);
  EXPECT_FALSE(timeline.communications[1].true_sharing);
}

TEST(OwnershipTimeline, TheLastStorerIsTheProducer) {
  Scene scene = plain_scene(3);
  scene.opened_by(0, AccessKind::store).trap(1, store_ip).trap(2, load_ip);
  EXPECT_EQ(pairs(scene.tell()), (Pairs{{0, 1}, {1, 2}}));
}

TEST(OwnershipTimeline, UnknownKindConsumesAndNeverProduces) {
  Scene scene = plain_scene(3);
  scene.opened_by(0, AccessKind::store).trap(1, mystery_ip).trap(2, load_ip);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}, {0, 2}}));
  EXPECT_EQ(timeline.communications[0].consumer.kind, AccessKind::none);
}

TEST(OwnershipTimeline, UnknownKindOfAWriteWatchIsAStore) {
  Scene scene = plain_scene(3);
  scene.opened_by(0, AccessKind::load).trap(1, mystery_ip, 0, true).trap(2, load_ip);
  EXPECT_EQ(pairs(scene.tell()), (Pairs{{1, 2}}));
}

TEST(OwnershipTimeline, AnOperandElsewhereLeavesTheKindUnknown) {
  constexpr std::uint64_t ip = 0x5004;
  Scene scene = plain_scene(2);
  scene.knows(ip, absolute(AccessKind::store, line + 32, 8));  // not the watched word
  scene.opened_by(0, AccessKind::load).trap(1, ip).trap(0, load_ip);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_TRUE(timeline.communications.empty());
  EXPECT_EQ(timeline.accesses[1].bytes, LineBytes::range(0, 8));
}

TEST(OwnershipTimeline, RepeatedStaleAndForeignTrapsAreIgnored) {
  Scene scene = plain_scene(2);
  scene.opened_by(0, AccessKind::store).trap(1, load_ip).trap(0, store_ip).trap(1, load_ip);
  auto& traps = scene.traps();
  traps.insert(traps.begin() + 1, traps[0]);  // the same again
  profile::TrapRow foreign = traps[0];
  foreign.watch = WatchId{77};
  traps.push_back(foreign);
  traps.push_back(traps[0]);  // out of order
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}, {0, 1}}));
  EXPECT_EQ(timeline.ignored, 3U);
  EXPECT_EQ(timeline.gaps, 0U);
}

TEST(OwnershipTimeline, AGapForgetsWhatWasKnown) {
  Scene scene = plain_scene(3);
  scene.opened_by(0, AccessKind::store);
  scene.skip_sequence(1);
  scene.trap(1, load_ip);  // the lost trap may have been a store by thread 2
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_TRUE(timeline.communications.empty());
  EXPECT_EQ(timeline.gaps, 1U);
}

TEST(OwnershipTimeline, HostileRowsAreIgnored) {
  Scene scene = plain_scene(2);
  scene.opened_by(99, AccessKind::store);
  scene.trap(5, load_ip).trap(1, load_ip, 200).trap(0, store_ip).trap(1, load_ip);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(timeline.ignored, 2U);
  EXPECT_EQ(pairs(timeline), (Pairs{{0, 1}}));
}

TEST(OwnershipTimeline, HostileWordsAndProbabilities) {
  Scene scene = plain_scene(2);
  scene.words({word_at(255, 255, -3), word_at(8, 8, std::numeric_limits<float>::quiet_NaN()), word_at(0, 8, 0)});
  scene.opened_by(0, AccessKind::store).trap(1, load_ip, 0).trap(0, store_ip, 1).trap(1, load_ip, 2);
  for (const auto& seen : scene.tell().communications) {
    EXPECT_GE(seen.weight, 1);
    EXPECT_LE(seen.weight, 1000);
  }
}

TEST(OwnershipTimeline, AnAddressOutsideTheLineIsNoAccess) {
  Scene scene = plain_scene(2);
  scene.opened_by(0, AccessKind::store, AddressFrom::retired, 4096).trap(1, load_ip);
  EXPECT_TRUE(scene.tell().communications.empty());
}

TEST(OwnershipTimeline, ADrawnWordIsNotNeededWhereCertainOnesTellTheSame) {
  // Both threads touch both words in each visit, the drawn one first.
  Scene scene = plain_scene(2);
  scene.words({word_at(0), word_at(8, 8, 0.25F)}).opened_by(0, AccessKind::store);
  for (const std::uint32_t thread : {1U, 0U}) {
    scene.trap(thread, store_ip, 1).trap(thread, store_ip, 0);
  }
  const OwnershipTimeline both = scene.tell();
  EXPECT_EQ(pairs(both), (Pairs{{0, 1}, {1, 0}}));
  EXPECT_DOUBLE_EQ(both.communications[0].weight, 1);
  EXPECT_DOUBLE_EQ(both.communications[1].weight, 1);
  Scene drawn_only = plain_scene(2);
  drawn_only.words({word_at(0), word_at(8, 8, 0.25F)}).opened_by(0, AccessKind::store);
  drawn_only.trap(1, store_ip, 1).trap(0, store_ip, 0).trap(1, store_ip, 0);
  const OwnershipTimeline mixed = drawn_only.tell();
  EXPECT_EQ(pairs(mixed), (Pairs{{0, 1}, {1, 0}, {0, 1}}));
  EXPECT_DOUBLE_EQ(mixed.communications[0].weight, 4);
  EXPECT_DOUBLE_EQ(mixed.communications[2].weight, 1);
}

TEST(OwnershipTimeline, ADrawnWordIsNotNeededWhereItOnlyCutsTheCertainOneOff) {
  // The sampled thread reads the other's stores, the drawn word first, and the watch ends there.
  const auto visit = [](bool stores_sampled, bool goes_on) {
    Scene scene = plain_scene(2);
    scene.words({word_at(0), word_at(8, 8, 0.25F)}).opened_by(0, AccessKind::load).trap(1, store_ip, 1);
    if (stores_sampled) {
      scene.trap(1, store_ip, 0);
    }
    scene.trap(0, load_ip, 1);
    if (goes_on) {
      scene.trap(1, store_ip, 1);
    }
    const OwnershipTimeline timeline = scene.tell();
    EXPECT_EQ(pairs(timeline), (Pairs{{1, 0}}));
    return timeline.communications.at(0).weight;
  };
  EXPECT_DOUBLE_EQ(visit(true, false), 1);
  EXPECT_DOUBLE_EQ(visit(false, false), 4);  // nobody stores to the certain word
  EXPECT_DOUBLE_EQ(visit(true, true), 4);    // the sampled thread did not come back to it
}

TEST(OwnershipTimeline, AnAccessOfTwoWatchedWordsIsSeenByTheCertainOne) {
  constexpr std::uint64_t wide = 0x5010;
  Scene scene = plain_scene(2);
  scene.knows(wide, absolute(AccessKind::store, line, 16));
  scene.words({word_at(0), word_at(8, 8, 0.25F)}).opened_by(0, AccessKind::load);
  scene.trap(1, wide, 1).trap(0, load_ip, 0);
  const OwnershipTimeline timeline = scene.tell();
  EXPECT_EQ(pairs(timeline), (Pairs{{1, 0}}));
  EXPECT_DOUBLE_EQ(timeline.communications[0].weight, 1);
  EXPECT_TRUE(timeline.communications[0].true_sharing);
}

TEST(OwnershipTimeline, TwoDrawnWordsWeighTheirJointProbability) {
  // Two of eight words without replacement: each with 1/4, both with 1/4 * 1/7.
  Scene scene = plain_scene(2);
  scene.words({word_at(8, 8, 0.25F), word_at(16, 8, 0.25F)});
  scene.opened_by(1, AccessKind::load).trap(0, store_ip, 0).trap(1, load_ip, 1);
  const OwnershipTimeline timeline = scene.tell();
  ASSERT_EQ(timeline.communications.size(), 1U);
  EXPECT_NEAR(timeline.communications[0].weight, 28, 1e-6);
}

TEST(OwnershipTimeline, TheLineHasAnotherAddressInAnotherProcess) {
  constexpr std::uint64_t elsewhere = 0x7f00'0000;
  symbolizer::MemoryAccess add;
  add.kind = AccessKind::load_store;
  add.width = 4;
  add.base = Register::rbx;
  Scene scene(2);
  scene.opened_by(0, AccessKind::store, profile::AddressFrom::retired, 4, 4).knows(0x500, add).trap(1, 0x500);
  scene.traps()[0].line = elsewhere;
  scene.traps()[0].registers[Register::rbx] = elsewhere + 4;
  const OwnershipTimeline timeline = scene.tell();
  ASSERT_EQ(timeline.communications.size(), 1U);
  const SeenCommunication& seen = timeline.communications[0];
  EXPECT_EQ(seen.consumer.bytes, LineBytes::range(4, 4));
  EXPECT_TRUE(seen.true_sharing);
  EXPECT_EQ(seen.producer.line, line);
  EXPECT_EQ(seen.consumer.line, elsewhere);
}

/// One register, which watches the second word; thread 0 was sampled at the first.
Scene other_word_scene() {
  Scene scene = plain_scene(3);
  scene.words({word_at(8, 8, 0.25F)}).opened_by(0, AccessKind::load);
  return scene;
}

TEST(OwnershipTimeline, AThreadWhoseWordIsNotWatchedIsExpectedBack) {
  Scene scene = other_word_scene();
  scene.trap(1, load_ip).trap(1, store_ip, 0, true);
  scene.watch().state = profile::LineState{{1, 2, 3, 4, 5, 6, 7, 8}};
  scene.traps()[1].state = profile::LineState{{1, 9, 3, 5, 5, 6, 7, 8}};
  const OwnershipTimeline timeline = scene.tell();
  ASSERT_EQ(pairs(timeline), (Pairs{{1, 0}}));
  const SeenCommunication& expected = timeline.communications[0];
  EXPECT_TRUE(expected.consumer.sampled);
  EXPECT_FALSE(expected.true_sharing);
  EXPECT_DOUBLE_EQ(expected.weight, 4);
  EXPECT_EQ(expected.producer.instruction, store_ip - 4);
  EXPECT_EQ(expected.changed, 0b1000);  // without the word that was watched: the producer's store
}

TEST(OwnershipTimeline, NobodyIsExpectedBackWhereNobodyStoresOrTheReturnIsSeen) {
  Scene readers = other_word_scene();
  EXPECT_TRUE(readers.trap(1, load_ip).trap(2, load_ip).tell().communications.empty());
  Scene seen = other_word_scene();
  EXPECT_FALSE(seen.trap(1, store_ip).trap(0, load_ip).tell().communications.at(0).consumer.sampled);
  Scene own_word = plain_scene(2);
  own_word.opened_by(0, AccessKind::load);
  EXPECT_TRUE(own_word.trap(1, store_ip).tell().communications.empty());
}

TEST(TouchedBytes, FromRegisters) {
  symbolizer::MemoryAccess access;
  access.width = 4;
  access.base = Register::rbx;
  access.index = Register::rcx;
  access.scale = 4;
  access.displacement = -8;
  Registers registers;
  registers[Register::rbx] = line + 16;
  registers[Register::rcx] = 3;
  EXPECT_EQ(touched_bytes(access, registers, 0, 0, line), LineBytes::range(20, 4));
  access.overwrites_base = true;
  EXPECT_FALSE(touched_bytes(access, registers, 0, 0, line));
}

TEST(TouchedBytes, RipIsTheAddressAfterTheInstruction) {
  symbolizer::MemoryAccess access;
  access.width = 8;
  access.base = Register::rip;
  access.displacement = 0x100;
  EXPECT_EQ(touched_bytes(access, {}, line - 0x100 + 8, 0, line), LineBytes::range(8, 8));
}

TEST(TouchedBytes, ThreadLocalNeedsTheThreadPointer) {
  symbolizer::MemoryAccess access;
  access.width = 8;
  access.segment_fs = true;
  access.displacement = -16;
  EXPECT_EQ(touched_bytes(access, {}, 0, line + 16, line), LineBytes::range(0, 8));
  EXPECT_FALSE(touched_bytes(access, {}, 0, 0, line));
}

}  // namespace
}  // namespace crosstalk::attribution::test::ownership_timeline_test
