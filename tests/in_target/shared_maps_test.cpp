// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/processes/shared_maps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "collectors/in_target/processes/cross_process_state.h"

namespace crosstalk::in_target::shared_maps_test {
namespace {

constexpr std::uint64_t page = 4096;
constexpr std::uint64_t base = 0x7f00'0000'0000;

class SharedMapsTest : public ::testing::Test {
 protected:
  /// Simulates a sample at `address` when the kernel reports a mapping of `inode`, from `file_offset` on.
  void identify(std::uint64_t address, std::uint64_t inode, std::uint64_t file_offset = 0) {
    SharedPlace place;
    const SharedMaps::Claim claim = maps_->claim(address, place);
    ASSERT_TRUE(claim.granted());
    place.device = 1;
    place.inode = inode;
    place.file_offset = file_offset;
    maps_->settle(claim, SharedMaps::Outcome::identified, place);
  }
  [[nodiscard]] SharedLookup look(std::uint64_t address) const {
    SharedPlace place;
    return maps_->find(address, place);
  }

  std::unique_ptr<SharedMaps> maps_ = std::make_unique<SharedMaps>();
};

TEST_F(SharedMapsTest, AMappingIsFoundFromItsFirstByteToItsLast) {
  EXPECT_TRUE(maps_->empty());
  ASSERT_TRUE(maps_->add(base, 3 * page));
  EXPECT_FALSE(maps_->empty());
  EXPECT_EQ(look(base - 1), SharedLookup::none);
  EXPECT_EQ(look(base), SharedLookup::unidentified);
  EXPECT_EQ(look(base + 3 * page - 1), SharedLookup::unidentified);
  EXPECT_EQ(look(base + 3 * page), SharedLookup::none);
}

TEST_F(SharedMapsTest, IdentityIsWhatWasSettled) {
  maps_->add(base, 2 * page);
  identify(base + 5, 77, 8 * page);
  SharedPlace place;
  ASSERT_EQ(maps_->find(base + page, place), SharedLookup::found);
  EXPECT_EQ(place.begin, base);
  EXPECT_EQ(place.bytes, 2 * page);
  EXPECT_EQ(place.file_offset, 8 * page);
  EXPECT_EQ(place.device, 1U);
  EXPECT_EQ(place.inode, 77U);
  EXPECT_FALSE(maps_->claim(base, place).granted()) << "it is known already";
}

TEST_F(SharedMapsTest, OneAtATimeIdentifies) {
  maps_->add(base, page);
  SharedPlace place;
  const SharedMaps::Claim first = maps_->claim(base, place);
  EXPECT_TRUE(first.granted());
  EXPECT_FALSE(maps_->claim(base, place).granted());
  maps_->settle(first, SharedMaps::Outcome::again, place);
  EXPECT_EQ(look(base), SharedLookup::unidentified);
  const SharedMaps::Claim second = maps_->claim(base, place);
  ASSERT_TRUE(second.granted());
  maps_->settle(second, SharedMaps::Outcome::unknown, place);
  EXPECT_EQ(look(base), SharedLookup::unknown);
  EXPECT_FALSE(maps_->claim(base, place).granted()) << "asked once, and not at every sample again";
}

TEST_F(SharedMapsTest, AByteOfTheFileHasItsAddress) {
  maps_->add(base, 2 * page);
  maps_->add(base + 16 * page, 4 * page);
  identify(base, 77);
  identify(base + 16 * page, 78, 2 * page);
  EXPECT_EQ(maps_->address_of(1, 77, page + 64), base + page + 64);
  EXPECT_EQ(maps_->address_of(1, 78, 3 * page), base + 17 * page);
  EXPECT_EQ(maps_->address_of(1, 77, 2 * page), 0U) << "beyond what is mapped";
  EXPECT_EQ(maps_->address_of(1, 78, page), 0U) << "before what is mapped";
  EXPECT_EQ(maps_->address_of(2, 77, 0), 0U);
  EXPECT_EQ(maps_->address_of(1, 79, 0), 0U);
}

TEST_F(SharedMapsTest, WhatIsUnmappedIsGoneAndTheRestIsAskedAnew) {
  maps_->add(base, 8 * page);
  identify(base, 77);
  EXPECT_TRUE(maps_->remove(base + 2 * page, page));
  EXPECT_EQ(look(base + 2 * page), SharedLookup::none);
  EXPECT_EQ(look(base + 2 * page - 1), SharedLookup::unidentified);
  EXPECT_EQ(look(base + 3 * page), SharedLookup::unidentified);
  EXPECT_EQ(look(base + 8 * page - 1), SharedLookup::unidentified);
  EXPECT_FALSE(maps_->remove(base + 2 * page, page));
  EXPECT_TRUE(maps_->remove_at(base + 3 * page));
  EXPECT_EQ(look(base + 4 * page), SharedLookup::none);
  EXPECT_FALSE(maps_->remove_at(base + 3 * page));
  EXPECT_EQ(look(base), SharedLookup::unidentified);
}

TEST_F(SharedMapsTest, UnmappedWhileItIsIdentified) {
  maps_->add(base, page);
  SharedPlace place;
  const SharedMaps::Claim claim = maps_->claim(base, place);
  EXPECT_TRUE(maps_->remove(base, page));
  EXPECT_EQ(look(base), SharedLookup::none);
  maps_->add(base, page);  // another mapping at the same place
  place.inode = 77;
  maps_->settle(claim, SharedMaps::Outcome::identified, place);
  EXPECT_EQ(look(base), SharedLookup::unidentified) << "it has not got the identity of the one before";
}

TEST_F(SharedMapsTest, PlacesAreUsedAgain) {
  for (std::uint64_t i = 0; i < std::uint64_t{10} * SharedMaps::capacity; ++i) {
    ASSERT_TRUE(maps_->add(base + i * page, page));
    identify(base + i * page, i);
    ASSERT_TRUE(maps_->remove(base + i * page, page));
  }
  EXPECT_FALSE(maps_->overflowed());
}

TEST_F(SharedMapsTest, MoreThanThereIsRoomForIsSaidOnce) {
  for (std::uint64_t i = 0; i < SharedMaps::capacity; ++i) {
    ASSERT_TRUE(maps_->add(base + i * page, page));
  }
  EXPECT_FALSE(maps_->overflowed());
  EXPECT_FALSE(maps_->add(base - page, page));
  EXPECT_EQ(look(base - page), SharedLookup::none);
  EXPECT_TRUE(maps_->overflowed());
  EXPECT_FALSE(maps_->overflowed());
}

TEST_F(SharedMapsTest, AForkedChildAsksForItself) {
  maps_->add(base, page);
  maps_->add(base + page, page);
  maps_->add(base + 2 * page, page);
  identify(base, 77);
  SharedPlace place;
  EXPECT_TRUE(maps_->claim(base + page, place).granted());  // by a thread that the child does not have
  EXPECT_TRUE(maps_->claim(base + 2 * page, place).granted());
  maps_->remove(base + 2 * page, page);
  maps_->after_fork();
  EXPECT_EQ(look(base), SharedLookup::unidentified);
  identify(base, 77);
  identify(base + page, 78);
  EXPECT_EQ(look(base + 2 * page), SharedLookup::none);
}

// A reader must never see the identity of one mapping with the place of another.
TEST_F(SharedMapsTest, ReadersSeeWholeMappings) {
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> torn{0}, seen{0};
  std::thread reader([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      for (std::uint64_t i = 0; i < 4; ++i) {
        SharedPlace place;
        if (maps_->find(base + i * page, place) == SharedLookup::found) {
          ++seen;
          torn += place.begin != base + i * page || place.inode != 100 + i || place.file_offset != i * page ? 1 : 0;
        }
      }
    }
  });
  for (std::uint64_t round = 0; round < 200'000 || (seen == 0 && round < 100'000'000); ++round) {
    const std::uint64_t i = round % 4;
    maps_->add(base + i * page, page);
    identify(base + i * page, 100 + i, i * page);
    maps_->remove(base + i * page, page);
  }
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_GT(seen, 0U);
}

TEST(SharedLineNames, TellLinesAndObjectsApart) {
  const SharedLine line{8, 1234, 4096, true, true};
  SharedLine same = line;
  same.others = false;
  EXPECT_EQ(line.key(), same.key());
  EXPECT_EQ(line.key() % profile::cache_line, 0U);
  SharedLine next = line;
  next.file_offset += profile::cache_line;
  EXPECT_NE(line.key(), next.key());
  EXPECT_EQ(line.object(), next.object());
  SharedLine swapped = line;
  swapped.device = line.inode;
  swapped.inode = line.device;
  EXPECT_NE(line.object(), swapped.object());
  EXPECT_NE(SharedLine{}.object(), 0U);
}

}  // namespace
}  // namespace crosstalk::in_target::shared_maps_test
