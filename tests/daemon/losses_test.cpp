// SPDX-License-Identifier: Apache-2.0
// What was lost is told once.
#include "daemon/losses.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

namespace crosstalk::daemon::losses_test {
namespace {

std::map<std::string, std::uint64_t> counts(const std::vector<profile::MessageRow>& messages) {
  std::map<std::string, std::uint64_t> counts;
  for (const profile::MessageRow& row : messages) {
    counts[row.code] = row.count;
    EXPECT_TRUE(row.text.starts_with(std::to_string(row.count))) << row.text;
  }
  return counts;
}

using Counts = std::map<std::string, std::uint64_t>;

TEST(Losses, AreToldSinceTheLastTime) {
  const auto arena = std::make_unique<profile::ArenaHeader>();
  Losses losses;
  EXPECT_TRUE(losses.take({0, 0, 0, 64}, *arena, {}).empty());
  arena->threads_unobserved = 3;
  arena->threads_without_memory = 1;
  EXPECT_EQ(
      counts(losses.take({5, 2, 1, 64}, *arena, {})),
      (Counts{{"records_lost", 5}, {"ring_corrupt", 2}, {"threads_unobserved", 3}, {"threads_without_memory", 2}}));
  arena->processes_without_room = 4;
  arena->threads_unobserved = 2;  // a target has written there
  EXPECT_EQ(counts(losses.take({9, 2, 1, 64}, *arena, {})),
            (Counts{{"records_lost", 4}, {"processes_without_memory", 4}}));
}

TEST(Losses, OfMemorySamplesAreCountedSinceTheLastTimeToo) {
  const auto arena = std::make_unique<profile::ArenaHeader>();
  std::vector<std::uint64_t> accesses, alone;
  const Losses::RemarksOnMemory remarks = [&](const profile::MemoryCounts& counts) {
    accesses.push_back(counts.accesses);
    alone.push_back(counts.clock_alone);
    EXPECT_EQ(counts.missing_permille, 300U) << "an extreme stays";
    return std::vector<profile::MessageRow>{{"a_remark", "1 remark", 1}};
  };
  arena->memory_counts.accesses = 100;
  arena->memory_counts.clock_alone = 2;
  arena->memory_counts.missing_permille = 300;
  Losses losses;
  EXPECT_EQ(losses.take({}, *arena, remarks).size(), 1U);
  arena->memory_counts.accesses = 150;
  EXPECT_EQ(losses.take({}, *arena, remarks).size(), 1U);
  EXPECT_EQ(accesses, (std::vector<std::uint64_t>{100, 50}));
  EXPECT_EQ(alone, (std::vector<std::uint64_t>{2, 0}));
}

}  // namespace
}  // namespace crosstalk::daemon::losses_test
