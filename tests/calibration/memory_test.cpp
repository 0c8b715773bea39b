// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "collectors/calibration/held_memory.h"
#include "collectors/calibration/memory_block.h"
#include "collectors/calibration/pointer_chain.h"
#include "collectors/calibration/working_set.h"

namespace crosstalk::collectors::calibration::memory_test {
namespace {

using models::Level;

TEST(PointerChain, IsOneCircleThroughAllLines) {
  constexpr std::uint32_t line = 64;
  constexpr std::size_t lines = 1000;
  std::vector<std::byte> memory(line * (lines + 1));
  std::byte* const first = memory.data() + (line - reinterpret_cast<std::uintptr_t>(memory.data()) % line) % line;
  void* const begin = make_pointer_chain(first, line * lines, line, 1);
  std::set<std::ptrdiff_t> seen;
  void* place = begin;
  do {
    const std::ptrdiff_t offset = static_cast<std::byte*>(place) - first;
    EXPECT_EQ(offset % line, 0);
    EXPECT_TRUE(seen.insert(offset).second);
    place = *static_cast<void**>(place);
  } while (place != begin && seen.size() <= lines);
  EXPECT_EQ(seen.size(), lines);
}

TEST(MemoryBlock, IsAlignedAndEmptyAndKnowsItsPages) {
  constexpr std::uint64_t bytes = std::uint64_t{6} << 20;
  auto block = MemoryBlock::map(bytes);
  ASSERT_TRUE(block) << block.error().message;
  EXPECT_EQ(block->size(), bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block->data()) % (2U << 20), 0U);
  EXPECT_EQ(block->data()[bytes - 1], std::byte{0});
  EXPECT_TRUE(block->page_bytes() == 4096 || block->page_bytes() == (2U << 20)) << block->page_bytes();
  const MemoryBlock moved = std::move(*block);
  EXPECT_EQ(moved.size(), bytes);
}

TEST(MemoryBlock, RefusesWhatThereIsNot) { EXPECT_FALSE(MemoryBlock::map(std::uint64_t{1} << 55)); }

TEST(MemoryBlock, IsNotWaitedForBeyondTheDeadline) {
  const auto block = MemoryBlock::map(std::uint64_t{6} << 20, 0);
  ASSERT_FALSE(block);
  EXPECT_NE(block.error().message.find("0 of 6 MiB were there in time"), std::string::npos) << block.error().message;
  std::vector<std::byte> memory(4096);
  EXPECT_EQ(make_pointer_chain(memory.data(), 1U << 12, 64, 1, 0), nullptr);
}

TEST(HeldMemory, IsTouchedOnce) {
  HeldMemory memory;
  memory.expect({3});
  const auto first = memory.block(3, 8192, UINT64_MAX);
  ASSERT_TRUE(first);
  std::byte* const data = (*first)->data();
  EXPECT_EQ((*memory.block(3, 4096, 0))->data(), data);
  EXPECT_EQ(memory.bytes(), 8192U);
  EXPECT_FALSE(memory.block(3, 1U << 20, 0)) << "more is wanted, and no time is left";
}

TEST(AvailableMemory, IsKnownOnLinux) { EXPECT_GT(available_memory(), std::uint64_t{1} << 20); }

models::Machine server(std::uint32_t cores, std::uint64_t l2, std::uint64_t l3) {
  models::Machine m;
  std::vector<std::uint32_t> all;
  for (std::uint32_t cpu = 0; cpu < cores; ++cpu) {
    m.processors.push_back({cpu, cpu, 0, 0});
    m.caches.push_back({1, 32U << 10, 64, 8, {cpu}});
    m.caches.push_back({2, l2, 64, 8, {cpu}});
    all.push_back(cpu);
  }
  m.caches.push_back({3, l3, 64, 16, all});
  return m;
}

constexpr std::uint64_t mebi = std::uint64_t{1} << 20;
constexpr std::uint64_t plenty = std::uint64_t{64} << 30;

TEST(WorkingSet, FitsItsLevelAndNotTheOneBefore) {
  const models::Machine m = server(4, mebi, 32 * mebi);
  EXPECT_EQ(*working_set(m, Level::l1d, {0}, plenty), 16U << 10);
  EXPECT_EQ(*working_set(m, Level::l2, {0}, plenty), 96U << 10);
  EXPECT_EQ(*larger_working_set(m, {0}), 576U << 10);
  EXPECT_EQ(*working_set(m, Level::l3, {0}, plenty), 3 * mebi);
  EXPECT_EQ(*working_set(m, Level::l3, {0, 1, 2, 3}, plenty), 3 * mebi);
  EXPECT_EQ(*working_set(server(8, mebi, 16 * mebi), Level::l3, {0, 1, 2, 3, 4, 5, 6, 7}, plenty), 3 * mebi / 2);
  EXPECT_EQ(*working_set(m, Level::memory, {0}, plenty), 132 * mebi);
  EXPECT_EQ(*working_set(m, Level::memory, {0, 1, 2, 3}, plenty), 36 * mebi);
}

TEST(WorkingSet, IsRefusedWhereThereIsNone) {
  const models::Machine small = server(8, 2 * mebi, 16 * mebi);
  EXPECT_FALSE(working_set(small, Level::l3, {0, 1, 2, 3, 4, 5, 6, 7}, plenty));
  EXPECT_FALSE(working_set(small, Level::memory, {0}, 100 * mebi));
  models::Machine none = small;
  none.caches.pop_back();
  EXPECT_FALSE(working_set(none, Level::l3, {0}, plenty));
  EXPECT_TRUE(working_set(none, Level::memory, {0}, plenty));
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::memory_test
