// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/line_state.h"

#include <gtest/gtest.h>

#include <random>

namespace crosstalk::reference::line_state_test {
namespace {

constexpr auto load = AccessKind::load;
constexpr auto store = AccessKind::store;
constexpr auto both = AccessKind::load_store;

/// The definitions word for word, over the whole history.
class ByDefinition {
 public:
  std::optional<Transfer> access(const LineAccess& now, std::vector<ThreadIndex>& invalidated) {
    const auto seen = transfer(now);
    if (stores(now.kind)) {
      find_invalidated(now, invalidated);
    }
    history_.push_back(now);
    return seen;
  }

 private:
  static constexpr std::size_t never = SIZE_MAX;

  template <class Condition>
  [[nodiscard]] std::size_t last(Condition condition) const {
    for (std::size_t i = history_.size(); i-- > 0;) {
      if (condition(history_[i])) {
        return i;
      }
    }
    return never;
  }

  [[nodiscard]] std::optional<Transfer> transfer(const LineAccess& now) const {
    const std::size_t last_store = last([](const LineAccess& past) { return stores(past.kind); });
    const std::size_t own = last([&](const LineAccess& past) { return past.thread == now.thread; });
    const std::size_t since = own == never ? 0 : own + 1;
    if (last_store == never || last_store < since || history_[last_store].thread == now.thread) {
      return std::nullopt;
    }
    const ThreadIndex producer = history_[last_store].thread;
    for (std::size_t i = history_.size(); i-- > since;) {
      const LineAccess& past = history_[i];
      if (past.thread == producer && stores(past.kind) && (past.bytes & now.bytes) != 0) {
        return Transfer{producer, past.code, true};
      }
    }
    return Transfer{producer, history_[last_store].code, false};
  }

  void find_invalidated(const LineAccess& now, std::vector<ThreadIndex>& invalidated) const {
    const std::size_t last_store = last([](const LineAccess& past) { return stores(past.kind); });
    std::vector<ThreadIndex> met;
    for (const LineAccess& past : history_) {
      if (std::find(met.begin(), met.end(), past.thread) == met.end()) {
        met.push_back(past.thread);
      }
    }
    for (const ThreadIndex thread : met) {
      if (thread != now.thread && reads_since(thread, last_store)) {
        invalidated.push_back(thread);
      }
    }
  }

  /// True if `thread` has read since, not counting reads right behind its own store.
  [[nodiscard]] bool reads_since(ThreadIndex thread, std::size_t last_store) const {
    bool others_came = last_store == never || history_[last_store].thread != thread;
    for (std::size_t i = last_store == never ? 0 : last_store + 1; i < history_.size(); ++i) {
      others_came = others_came || history_[i].thread != thread;
      if (history_[i].thread == thread && others_came) {
        return true;
      }
    }
    return false;
  }

  std::vector<LineAccess> history_;
};

class Line {
 public:
  std::optional<Transfer> operator()(ThreadIndex thread, AccessKind kind, std::uint64_t bytes, CodeIndex code = 0) {
    invalidated.clear();
    return state_.access({thread, code, bytes, kind}, invalidated);
  }
  std::vector<ThreadIndex> invalidated;

 private:
  LineState state_;
};

TEST(LineState, FirstAccessOfALineIsNoCommunication) {
  Line line;
  EXPECT_EQ(line(1, load, 1), std::nullopt);
  EXPECT_EQ(line(2, load, 1), std::nullopt);
}

TEST(LineState, ReadOfAStoredByteIsTrueSharing) {
  Line line;
  EXPECT_EQ(line(1, store, 0xff, 7), std::nullopt);
  EXPECT_EQ(line(2, load, 0x80), (Transfer{1, 7, true}));
  EXPECT_EQ(line(2, load, 0x80), std::nullopt) << "it has accessed the line since";
}

TEST(LineState, AccessToOtherBytesIsFalseSharing) {
  Line line;
  line(1, store, 0x0f, 7);
  EXPECT_EQ(line(2, store, 0xf0, 8), (Transfer{1, 7, false}));
  EXPECT_EQ(line(1, store, 0x0f, 7), (Transfer{2, 8, false}));
}

TEST(LineState, BytesStoredBeforeTheOwnPreviousAccessDoNotCount) {
  Line line;
  line(1, store, 0x0f);
  line(2, load, 0x0f);
  line(1, store, 0xf0);
  EXPECT_EQ(line(2, load, 0x0f)->true_sharing, false);
}

TEST(LineState, OnlyTheMostRecentStoringThreadProduces) {
  Line line;
  line(1, store, 0x01, 10);
  line(2, store, 0x02, 20);
  EXPECT_EQ(line(3, load, 0x01), (Transfer{2, 20, false})) << "1 stored that byte, but 2 stored last";
}

TEST(LineState, EarlierStoresOfTheProducerCountAcrossOthers) {
  Line line;
  line(1, store, 0x01, 10);
  line(2, store, 0x02, 20);
  line(1, store, 0x04, 11);
  EXPECT_EQ(line(3, load, 0x01), (Transfer{1, 10, true}));
}

TEST(LineState, NamesTheLatestStoreToTheByte) {
  Line line;
  line(1, store, 0x03, 10);
  line(1, store, 0x01, 11);
  line(1, store, 0x04, 12);
  EXPECT_EQ(line(2, load, 0x01), (Transfer{1, 11, true}));
  EXPECT_EQ(line(3, load, 0x02), (Transfer{1, 10, true}));
}

TEST(LineState, ReadModifyWriteConsumesOnceAndProduces) {
  Line line;
  line(1, both, 1, 10);
  EXPECT_EQ(line(2, both, 1, 20), (Transfer{1, 10, true}));
  EXPECT_EQ(line(1, both, 1, 10), (Transfer{2, 20, true}));
}

TEST(LineState, StoreInvalidatesThoseThatHaveReadSinceTheLastStore) {
  Line line;
  line(1, store, 1);
  line(2, load, 1);
  line(3, load, 1);
  EXPECT_EQ(line(1, store, 1), std::nullopt) << "nobody else stored";
  EXPECT_EQ(line.invalidated, (std::vector<ThreadIndex>{2, 3}));
  line(1, store, 1);
  EXPECT_TRUE(line.invalidated.empty()) << "nobody has read since";
}

TEST(LineState, OwnReadsBehindAStoreAreNoCopyToLose) {
  Line line;
  line(1, store, 1);
  line(1, load, 1);
  line(2, store, 1);
  EXPECT_TRUE(line.invalidated.empty()) << "this is a communication";
}

struct Shape {
  int threads, bytes, steps;
};

class RandomHistories : public testing::TestWithParam<Shape> {};

TEST_P(RandomHistories, FollowTheDefinition) {
  const Shape shape = GetParam();
  std::mt19937 random(42);
  const auto draw = [&](int below) { return static_cast<std::uint32_t>(random() % static_cast<unsigned>(below)); };
  std::size_t communications = 0, invalidations = 0;
  for (int round = 0; round < 200; ++round) {
    LineState state;
    ByDefinition definition;
    for (int step = 0; step < shape.steps; ++step) {
      const std::uint32_t first = draw(shape.bytes);
      const std::uint32_t count = 1 + draw(static_cast<int>(64 - first));
      const std::uint64_t mask = (count == 64 ? ~0ULL : (1ULL << count) - 1) << first;
      const LineAccess access{draw(shape.threads), draw(5), mask, static_cast<AccessKind>(1 + draw(3))};
      std::vector<ThreadIndex> expected_losers, losers;
      const auto expected = definition.access(access, expected_losers);
      ASSERT_EQ(state.access(access, losers), expected) << "round " << round << ", step " << step;
      ASSERT_EQ(losers, expected_losers) << "round " << round << ", step " << step;
      communications += expected ? 1 : 0;
      invalidations += losers.size();
    }
  }
  EXPECT_GT(communications, 1000U);
  EXPECT_GT(invalidations, 100U);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RandomHistories,
                         testing::Values(Shape{2, 64, 60}, Shape{3, 8, 100}, Shape{5, 64, 150}, Shape{2, 2, 60},
                                         Shape{12, 64, 100}));

}  // namespace
}  // namespace crosstalk::reference::line_state_test
