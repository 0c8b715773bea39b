// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/access_joiner.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::reference::access_joiner_test {
namespace {

std::vector<JoinedAccess> joined(const std::vector<Piece>& pieces, const InstructionFacts& facts) {
  AccessJoiner joiner;
  std::vector<JoinedAccess> result;
  for (const Piece& piece : pieces) {
    if (const auto access = joiner.take(piece, facts)) {
      result.push_back(*access);
    }
  }
  return result;
}

using List = std::vector<JoinedAccess>;

TEST(AccessJoiner, WideAccessIsOne) {
  const InstructionFacts wide{.load_bytes = 32};
  EXPECT_EQ(joined({{1, 0x100, 8}, {1, 0x108, 8}, {1, 0x110, 8}, {1, 0x118, 8}}, wide),
            (List{{0x100, 32, AccessKind::load}}));
}

TEST(AccessJoiner, RepeatedWideAccessesAreAsMany) {
  const InstructionFacts wide{.store_bytes = 16};
  const Piece low{1, 0x100, 8, true}, high{1, 0x108, 8, true}, next_low{1, 0x110, 8, true},
      next_high{1, 0x118, 8, true};
  EXPECT_EQ(joined({low, high, next_low, next_high, low, high}, wide),
            (List{{0x100, 16, AccessKind::store}, {0x110, 16, AccessKind::store}, {0x100, 16, AccessKind::store}}));
}

TEST(AccessJoiner, UnevenPieces) {
  EXPECT_EQ(joined({{1, 0x100, 8}, {1, 0x108, 2}}, {.load_bytes = 10}), (List{{0x100, 10, AccessKind::load}}));
}

TEST(AccessJoiner, AnInterruptedAccessBeginsAnew) {
  const InstructionFacts wide{.load_bytes = 16};
  EXPECT_EQ(joined({{1, 0x100, 8}, {1, 0x100, 8}, {1, 0x108, 8}}, wide).size(), 2U);
}

TEST(AccessJoiner, AtomicReadModifyWriteComesAsItsStore) {
  const InstructionFacts modify{.load_bytes = 8, .store_bytes = 8, .read_modify_write = true};
  EXPECT_EQ(joined({{1, 0x100, 8, true}, {1, 0x100, 8, true}}, modify),
            (List{{0x100, 8, AccessKind::load_store}, {0x100, 8, AccessKind::load_store}}));
}

TEST(AccessJoiner, ReadModifyWriteInTwoIsNotCountedThreeTimes) {
  const InstructionFacts modify{.load_bytes = 8, .store_bytes = 8, .read_modify_write = true};
  EXPECT_EQ(joined({{1, 0x100, 8, false}, {1, 0x100, 8, true}}, modify),
            (List{{0x100, 8, AccessKind::load}, {0x100, 8, AccessKind::store}}));
}

TEST(AccessJoiner, UnknownWidthsStayInPieces) { EXPECT_EQ(joined({{1, 0x100, 8}, {1, 0x108, 8}}, {}).size(), 2U); }

TEST(AccessJoiner, AnotherInstructionIsAnotherAccess) {
  EXPECT_EQ(joined({{1, 0x100, 8}, {2, 0x108, 8}}, {.load_bytes = 16}).size(), 2U);
}

}  // namespace
}  // namespace crosstalk::reference::access_joiner_test
