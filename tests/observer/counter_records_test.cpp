// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/counter_records.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <cstring>
#include <vector>

#include "collectors/observer/counter_reader.h"

namespace crosstalk::observer::counter_records_test {
namespace {

/// Words, with a header in front.
std::vector<std::byte> record(std::uint32_t type, const std::vector<std::uint64_t>& words) {
  std::vector<std::byte> bytes(sizeof(perf_event_header) + words.size() * sizeof words[0]);
  const perf_event_header header{type, PERF_RECORD_MISC_USER, static_cast<std::uint16_t>(bytes.size())};
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, words.data(), words.size() * sizeof words[0]);
  return bytes;
}

constexpr std::uint64_t pid_and_tid = std::uint64_t{4712} << 32U | 4711;

TEST(CounterRecords, a_reading_has_its_groups_counts) {
  const auto bytes = record(PERF_RECORD_SAMPLE, {17, 0x401000, pid_and_tid, 123456, 3, 2, 9000, 4500, 100, 42});
  const auto parsed = parse_counter_record(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->bytes, bytes.size());
  const auto* sample = std::get_if<CounterSample>(&parsed->record);
  ASSERT_NE(sample, nullptr);
  EXPECT_EQ(sample->event, 17U);
  EXPECT_EQ(sample->ip, 0x401000U);
  EXPECT_EQ(sample->tid, 4712);
  EXPECT_EQ(sample->time_ns, 123456U);
  EXPECT_EQ(sample->cpu, 3U);
  EXPECT_EQ(sample->enabled_ns, 9000U);
  EXPECT_EQ(sample->running_ns, 4500U);
  EXPECT_EQ(sample->counts, (std::vector<std::uint64_t>{100, 42}));
}

TEST(CounterRecords, lost_and_throttled_are_told) {
  const auto lost = parse_counter_record(record(PERF_RECORD_LOST, {17, 5}));
  ASSERT_TRUE(lost);
  EXPECT_EQ(std::get<PerfLost>(lost->record).records, 5U);
  const auto begins = parse_counter_record(record(PERF_RECORD_THROTTLE, {99, 17, 1}));
  ASSERT_TRUE(begins);
  EXPECT_TRUE(std::get<PerfThrottle>(begins->record).begins);
  const auto ends = parse_counter_record(record(PERF_RECORD_UNTHROTTLE, {99, 17, 1}));
  ASSERT_TRUE(ends);
  EXPECT_FALSE(std::get<PerfThrottle>(ends->record).begins);
  const auto other = parse_counter_record(record(PERF_RECORD_EXIT, {1, 2, 3}));
  ASSERT_TRUE(other);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(other->record));
}

TEST(CounterRecords, bytes_that_can_not_be_a_record_are_refused) {
  const auto whole = record(PERF_RECORD_SAMPLE, {17, 0x401000, pid_and_tid, 1, 3, 2, 9000, 4500, 100, 42});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(parse_counter_record(std::span(whole).first(size))) << size;
  }
  EXPECT_FALSE(parse_counter_record(record(PERF_RECORD_SAMPLE, {17, 1, pid_and_tid, 1, 3, 3, 9000, 4500, 100, 42})));
  EXPECT_FALSE(parse_counter_record(record(PERF_RECORD_SAMPLE, {17, 1, pid_and_tid, 1, 3, UINT64_MAX, 1, 1})));
  EXPECT_FALSE(parse_counter_record(record(PERF_RECORD_LOST, {17})));
}

TEST(CounterTally, counts_since_another) {
  const CounterTally before{10, 1, 2, 100, 50, 1, 0, "then"};
  const CounterTally more = CounterTally{15, 1, 5, 160, 80, 2, 3, "now"}.since(before);
  EXPECT_EQ(more.readings, 5U);
  EXPECT_EQ(more.lost, 0U);
  EXPECT_EQ(more.throttled, 3U);
  EXPECT_EQ(more.enabled_ns, 60U);
  EXPECT_EQ(more.running_ns, 30U);
  EXPECT_EQ(more.without, 1U);
  EXPECT_EQ(more.never, 3U);
  EXPECT_EQ(more.refusal, "now");
}

TEST(CounterRemarks, say_what_was_missing_and_nothing_else) {
  EXPECT_TRUE(remarks_on({}).empty());
  CounterTally tally;
  tally.readings = 100;
  tally.enabled_ns = tally.running_ns = 1'000'000;
  EXPECT_TRUE(remarks_on(tally).empty());
  tally.running_ns = 250'000;
  tally.lost = 3, tally.throttled = 2, tally.never = 1, tally.without = 4, tally.refusal = "no descriptor is left";
  std::vector<std::string> codes;
  for (const profile::MessageRow& remark : remarks_on(tally)) {
    codes.push_back(remark.code);
    EXPECT_EQ(remark.text.find('\n'), std::string::npos);
  }
  EXPECT_EQ(codes, (std::vector<std::string>{"counters_not_read", "counters_never_counted", "counters_multiplexed",
                                             "counters_throttled", "counter_readings_lost"}));
}

}  // namespace
}  // namespace crosstalk::observer::counter_records_test
