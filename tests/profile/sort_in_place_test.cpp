// SPDX-License-Identifier: Apache-2.0
#include "profile/sort_in_place.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace crosstalk::profile {
namespace {

struct Row {
  std::uint32_t key = 0;
  std::string text;
  bool operator==(const Row&) const = default;
};

TEST(SortInPlace, DoesWhatAStableSortDoes) {
  std::mt19937 random(7);  // NOLINT: the same each time
  for (const std::uint32_t keys : {1U, 3U, 50U, 100000U}) {
    for (const std::size_t size : {0U, 1U, 2U, 3U, 100U, 1000U}) {
      std::vector<Row> rows;
      for (std::size_t i = 0; i < size; ++i) {
        rows.push_back(
            {static_cast<std::uint32_t>(random() % keys), "a row that is longer than a word, " + std::to_string(i)});
      }
      std::vector<Row> want = rows;
      std::stable_sort(want.begin(), want.end(), [](const Row& a, const Row& b) { return a.key < b.key; });
      sort_in_place(rows, [](const Row& row) { return row.key; });
      EXPECT_EQ(rows, want) << size << " rows, " << keys << " keys";
    }
  }
}

}  // namespace
}  // namespace crosstalk::profile
