// SPDX-License-Identifier: Apache-2.0
// Pictures from a descriptor.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "driver/live/feed.h"
#include "driver/live/stream.h"
#include "live_snapshot.h"

namespace crosstalk::driver::live::live_feed_test {
namespace {

/// A feed at the end of a pipe.
class Piped {
 public:
  Piped() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::pipe(ends), 0);
    input_.reset(ends[1]);
    feed_ = feed_of(UniqueFd(ends[0]));
  }
  Feed::News after(const std::string& text) {
    EXPECT_EQ(::write(input_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return feed_->take();
  }
  Feed::News at_end() {
    input_.reset();
    return feed_->take();
  }

 private:
  UniqueFd input_;
  std::unique_ptr<Feed> feed_;
};

std::string line(std::uint64_t sequence) {
  Snapshot snapshot = test::sample_snapshot();
  snapshot.sequence = sequence;
  return line_of(snapshot) + "\n";
}

TEST(StreamFeed, TheLatestOfSeveralLinesCounts) {
  Piped pipe;
  const Feed::News news = pipe.after(line(1) + line(2));
  ASSERT_TRUE(news.snapshot);
  EXPECT_EQ(news.snapshot->sequence, 2U);
  EXPECT_FALSE(news.ended);
  const Feed::News end = pipe.at_end();
  EXPECT_TRUE(end.ended);
  EXPECT_FALSE(end.error);
}

TEST(StreamFeed, ALineMayComeInPieces) {
  Piped pipe;
  const std::string text = line(5);
  EXPECT_FALSE(pipe.after(text.substr(0, 100)).snapshot);
  const Feed::News news = pipe.after(text.substr(100));
  ASSERT_TRUE(news.snapshot);
  EXPECT_EQ(news.snapshot->sequence, 5U);
}

TEST(StreamFeed, AWriterMayDieWithinALine) {
  Piped pipe;
  ASSERT_TRUE(pipe.after(line(1) + line(2).substr(0, 50)).snapshot);
  const Feed::News end = pipe.at_end();
  EXPECT_TRUE(end.ended);
  EXPECT_FALSE(end.error);
}

TEST(StreamFeed, GarbageEndsIt) {
  Piped pipe;
  const Feed::News news = pipe.after("hello\n" + line(1));
  EXPECT_TRUE(news.ended);
  ASSERT_TRUE(news.error);
  EXPECT_NE(news.error->message.find("it is not JSON"), std::string::npos);
}

TEST(StreamFeed, AnEndBeforeAnyPictureIsAnError) {
  Piped nothing;
  EXPECT_TRUE(nothing.at_end().error);
  Piped half;
  EXPECT_FALSE(half.after("{\"schema\":").snapshot);
  EXPECT_TRUE(half.at_end().error);
  Piped unended;  // its last line has no end
  std::string text = line(3);
  text.pop_back();
  EXPECT_FALSE(unended.after(text).snapshot);
  EXPECT_TRUE(unended.at_end().snapshot);
}

}  // namespace
}  // namespace crosstalk::driver::live::live_feed_test
