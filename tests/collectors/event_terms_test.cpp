// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_terms.h"

#include <gtest/gtest.h>

#include <string_view>

namespace crosstalk::collectors::event_terms_test {
namespace {

const EventFormat format = {{"event", "config:0-7,32-35"}, {"umask", "config:8-15"},  {"inv", "config:23"},
                            {"ldlat", "config1:0-15"},     {"whole", "config2:0-63"}, {"swfilt", "config2:0"}};

EventConfig encoded(std::string_view terms) {
  const auto config = encode_terms(format, terms);
  EXPECT_TRUE(config) << terms << ": " << (config ? "" : config.error().message);
  return config.value_or(EventConfig{});
}

std::string refused(std::string_view terms, const EventFormat& by = format) {
  const auto config = encode_terms(by, terms);
  EXPECT_FALSE(config) << terms;
  return config ? "" : config.error().message;
}

TEST(EventTerms, APlaceTellsWhatIsInIt) {
  for (const char* const place : {"config:0-7,32-35", "config1:0-15", "config2:0-63", "config:5"}) {
    const std::uint64_t value = std::string_view(place) == "config:5" ? 1 : 0xab;
    EventConfig config{};
    ASSERT_TRUE(put_term(place, value, config)) << place;
    EXPECT_EQ(term_value(place, config), value) << place;
  }
  EXPECT_EQ(term_value("config1:0-15", {0, 0x70032, 0, 0}), 0x32U);
  EXPECT_EQ(term_value("config:0-7,32-35", {0xf000000cd, 0, 0, 0}), 0xfcdU);
  for (const char* const place : {"", "config", "config9:1", "config:9-1", "config:x"}) {
    EXPECT_EQ(term_value(place, {~0ULL, ~0ULL, ~0ULL, ~0ULL}), 0U) << place;
  }
}

TEST(EventTerms, GoWhereTheFormatSays) {
  EXPECT_EQ(encoded("event=0xcd,umask=0x1,ldlat=3"), (EventConfig{0x1cd, 3, 0, 0}));
  EXPECT_EQ(encoded("event=0x1c2"), (EventConfig{0x1000000c2, 0, 0, 0})) << "bits in two places";
  EXPECT_EQ(encoded("inv"), (EventConfig{1U << 23U, 0, 0, 0})) << "without a value: 1";
  EXPECT_EQ(encoded("whole=0xffffffffffffffff"), (EventConfig{0, 0, ~std::uint64_t{0}, 0}));
  EXPECT_EQ(encoded("config3=7,config=0x10"), (EventConfig{0x10, 0, 0, 7})) << "words of their own name";
  EXPECT_EQ(encoded(""), EventConfig{});
}

TEST(EventTerms, LaterOnesReplaceEarlierOnes) {
  EXPECT_EQ(encoded("ldlat=0xffff,ldlat=30"), (EventConfig{0, 30, 0, 0}));
  EXPECT_EQ(encoded("event=0xfff,event=1"), (EventConfig{1, 0, 0, 0}));
}

TEST(EventTerms, WhatIsNoneIsNamed) {
  EXPECT_EQ(refused("evnt=1"), "the unit has no 'evnt'");
  EXPECT_EQ(refused("event=x"), "'event=x' has no number");
  EXPECT_EQ(refused("event="), "'event=' has no number");
  EXPECT_EQ(refused("event=0x"), "'event=0x' has no number");
  EXPECT_EQ(refused("umask=256"), "256 does not fit into config:8-15");
  EXPECT_EQ(refused("swfilt=2"), "2 does not fit into config2:0");
  EXPECT_EQ(refused("event=99999999999999999999"), "'event=99999999999999999999' has no number");
}

TEST(EventTerms, PlacesThatAreNone) {
  for (const char* const place : {"", "config", "config:", "config4:1", "config:8-7", "config:0-64", "config:a",
                                  "config:1-", "1-2", "config:1;2"}) {
    EventConfig config{};
    const auto put = put_term(place, 1, config);
    EXPECT_FALSE(put) << place;
    EXPECT_EQ(refused("x=1", {{"x", place}}).find('x'), std::string::npos) << "the place is at fault";
  }
}

}  // namespace
}  // namespace crosstalk::collectors::event_terms_test
