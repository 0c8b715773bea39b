// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/arena_mapping.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <iterator>
#include <string>

#include "tests/in_target/attach_fixture.h"

namespace crosstalk::in_target::test::arena_mapping_test {
namespace {

class ArenaMapping : public AttachFixture {};

TEST_F(ArenaMapping, TheArenasSettingsAreTakenOver) {
  arena_.header().config.period_ns = 12345;
  arena_.header().memory.events = 1;
  const std::size_t own_before = own_memory_bytes();
  ASSERT_TRUE(map());
  const Runtime& r = runtime();
  EXPECT_EQ(r.config.period_ns, 12345U);
  EXPECT_EQ(r.memory.events, 1U);
  EXPECT_EQ(r.slot_count, 8U);
  EXPECT_NE(r.arena.header, &arena_.header()) << "a mapping of its own";
  EXPECT_EQ(r.arena.header->recorder_pid, ::getpid());
  EXPECT_EQ(own_memory_bytes(), own_before + arena_.header().rings_offset);
  EXPECT_TRUE(is_own_memory(reinterpret_cast<std::uint64_t>(r.arena.header))) << "nothing in it is watched";
}

TEST_F(ArenaMapping, SettingsThatCanNotBeAreNotBelieved) {
  arena_.header().memory.events = profile::most_memory_events + 1;
  ASSERT_TRUE(map());
  EXPECT_EQ(runtime().memory.events, 0U);
}

TEST_F(ArenaMapping, NoDescriptorIsKept) {
  const auto open_now = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = open_now();
  ASSERT_TRUE(map());
  EXPECT_EQ(open_now(), before);
}

TEST_F(ArenaMapping, WhatIsNoArenaOfARunningSessionIsLeftAlone) {
  EXPECT_FALSE(map_arena("/proc/self/fd/4711"));
  EXPECT_FALSE(map_arena("/dev/null"));
  arena_.header().state.store(static_cast<std::uint32_t>(profile::SessionState::stopping));
  EXPECT_FALSE(map());
  arena_.header().state.store(static_cast<std::uint32_t>(profile::SessionState::running));
  ++arena_.header().version;
  EXPECT_FALSE(map());
  --arena_.header().version;
  arena_.cut(arena_.header().total_bytes - page_bytes);
  EXPECT_FALSE(map()) << "rings would lie behind its end";
  EXPECT_EQ(arena_.header().processes_without_room.load(), 0U);
}

TEST_F(ArenaMapping, AnArenaWithMoreRingsThanAreProvidedForIsLeftAlone) {
  const Arena large(RingMemory::most_chunks * RingMemory::rings_a_chunk + 1, page_bytes);
  const std::size_t before = own_memory_bytes();
  EXPECT_FALSE(map_arena(large.name().c_str()));
  EXPECT_EQ(own_memory_bytes(), before);
}

TEST_F(ArenaMapping, AProgramUnderALimitThatHasNoRoomIsLeftAloneAndCounted) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  const std::string name = arena_.name();
  const rlimit little{16 * page_bytes, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &little), 0);
  const bool attached = map_arena(name.c_str());
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &before), 0);
  EXPECT_FALSE(attached);
  EXPECT_EQ(arena_.header().processes_without_room.load(), 1U);
}

}  // namespace
}  // namespace crosstalk::in_target::test::arena_mapping_test
