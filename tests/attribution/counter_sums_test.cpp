// SPDX-License-Identifier: Apache-2.0
// Readings of made programs, whose truth is known, to rates.
#include "attribution/counters/counter_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "attribution/counters/counted_evidence.h"

namespace crosstalk::attribution::counter_sums_test {
namespace {

using profile::CounterQuantity;
using profile::CounterRow;

CounterRow counter(std::uint32_t id, std::uint32_t group, CounterQuantity quantity, double each = 1,
                   const std::string& unit = "cpu") {
  return {id, group, profile::name_of(quantity), unit + "/config=0x1/", unit, quantity, each};
}

/// A place's rates per second of its time: cycles, then the other counters of the group.
using PerSecond = std::vector<double>;

/// A thread that goes from place to place, each a loop by its number (the instruction's address), or none (99).
class MadeThread {
 public:
  MadeThread(CounterSums& sums, std::uint32_t group, std::size_t counters, std::uint32_t thread = 0)
      : sums_(sums), group_(group), counts_(counters), thread_(thread) {}

  /// Stays at a place with `rates` and reads every `period_s`. The group counts only a part of the time.
  void stay(std::uint64_t place, double seconds, const PerSecond& rates, double period_s, double part = 1) {
    while (seconds > 0) {
      const double step = std::min(seconds, until_reading_s_);
      seconds -= step, until_reading_s_ -= step, enabled_s_ += step, running_s_ += step * part;
      for (std::size_t i = 0; i < counts_.size(); ++i) {
        counts_[i] += rates[i] * step * part;
      }
      if (until_reading_s_ <= 1e-12) {
        read(place);
        until_reading_s_ = period_s;
      }
    }
  }
  void read(std::uint64_t place) {
    profile::ReadingRow row;
    row.thread = ThreadId{thread_};
    row.time_ns = static_cast<std::uint64_t>(enabled_s_ * 1e9);
    row.ip = place;
    row.group = group_;
    row.life = life_;
    row.enabled_ns = static_cast<std::uint64_t>(enabled_s_ * 1e9);
    row.running_ns = static_cast<std::uint64_t>(running_s_ * 1e9);
    for (const double count : counts_) {
      row.counts.push_back(static_cast<std::uint64_t>(count));
    }
    sums_.add(row);
  }
  void begin_anew() {
    ++life_;
    std::fill(counts_.begin(), counts_.end(), 0);
    enabled_s_ = running_s_ = 0;
  }

 private:
  CounterSums& sums_;
  std::uint32_t group_, life_ = 1;
  std::vector<double> counts_;
  std::uint32_t thread_;
  double enabled_s_ = 0, running_s_ = 0, until_reading_s_ = 0.0013;
};

constexpr std::uint64_t elsewhere = 99;

std::optional<std::size_t> by_address(ThreadId, std::uint64_t, std::uint64_t ip) {
  return ip == elsewhere ? std::nullopt : std::optional<std::size_t>(ip);
}

const std::vector<CounterRow> simple = {counter(1, 1, CounterQuantity::cycles),
                                        counter(2, 1, CounterQuantity::instructions),
                                        counter(3, 1, CounterQuantity::l3_misses)};
const PerSecond busy = {3e9, 9e9, 1e4}, waiting = {3e9, 6e8, 2e7};
constexpr double period_s = 0.004;

void expect_near_truth(const CounterRates& rates, CounterQuantity quantity, double truth) {
  const CountedRate* const rate = rates.of(quantity);
  ASSERT_NE(rate, nullptr) << profile::name_of(quantity);
  EXPECT_NEAR(rate->per_s, truth, 0.01 * truth) << profile::name_of(quantity);
  EXPECT_LE(rate->ci95.low, truth * 1.0001) << profile::name_of(quantity);
  EXPECT_GE(rate->ci95.high, truth * 0.9999) << profile::name_of(quantity);
}

TEST(CounterSums, loops_with_long_visits_have_their_own_rates) {
  const std::vector<std::optional<std::size_t>> around(2);
  CounterSums sums(simple, around, by_address);
  MadeThread thread(sums, 1, 3);
  for (int turn = 0; turn < 20; ++turn) {
    thread.stay(0, 0.11, busy, period_s);
    thread.stay(1, 0.07, waiting, period_s);
  }
  const std::vector<CounterRates> loops = sums.loops();
  ASSERT_EQ(loops.size(), 2U);
  EXPECT_TRUE(loops[0].unknown.empty()) << loops[0].unknown;
  expect_near_truth(loops[0], CounterQuantity::instructions, 9e9);
  expect_near_truth(loops[0], CounterQuantity::l3_misses, 1e4);
  expect_near_truth(loops[1], CounterQuantity::l3_misses, 2e7);
  EXPECT_NEAR(*loops[0].ipc(), 3, 0.01);
  EXPECT_NEAR(*loops[1].ipc(), 0.2, 0.001);
  EXPECT_GT(loops[0].left, 0.01);
  EXPECT_LT(loops[0].left, 0.06);
}

TEST(CounterSums, a_thread_has_all_that_was_counted) {
  const std::vector<std::optional<std::size_t>> around(2);
  CounterSums sums(simple, around, by_address);
  MadeThread one(sums, 1, 3, 0);
  MadeThread other(sums, 1, 3, 5);
  for (int turn = 0; turn < 20; ++turn) {
    one.stay(0, 0.1, busy, period_s);
    one.stay(elsewhere, 0.1, waiting, period_s);
    other.stay(1, 0.1, waiting, period_s);
  }
  const auto threads = sums.threads();
  ASSERT_EQ(threads.size(), 2U);
  EXPECT_EQ(threads[0].thread, 0U);
  EXPECT_EQ(threads[1].thread, 5U);
  EXPECT_NEAR(*threads[0].rates.per_s(CounterQuantity::instructions), (9e9 + 6e8) / 2, 2e7);
  EXPECT_NEAR(*threads[1].rates.ipc(), 0.2, 1e-6);
}

TEST(CounterSums, a_loop_holds_what_loops_inside_it_do) {
  const std::vector<std::optional<std::size_t>> around = {std::nullopt, std::size_t{0}, std::size_t{0}};
  CounterSums sums(simple, around, by_address);
  MadeThread thread(sums, 1, 3);
  for (int turn = 0; turn < 30; ++turn) {
    thread.stay(1, 0.1, busy, period_s);
    thread.stay(2, 0.1, waiting, period_s);
  }
  const std::vector<CounterRates> loops = sums.loops();
  EXPECT_EQ(loops[0].left, 0);
  EXPECT_NEAR(*loops[0].per_s(CounterQuantity::instructions), 4.8e9, 5e7);
  EXPECT_NEAR(*loops[1].per_s(CounterQuantity::instructions), 9e9, 1e7);
}

TEST(CounterSums, visits_shorter_than_an_interval_have_none_and_say_why) {
  const std::vector<std::optional<std::size_t>> around(2);
  CounterSums sums(simple, around, by_address);
  MadeThread thread(sums, 1, 3);
  for (int turn = 0; turn < 2000; ++turn) {
    thread.stay(0, 0.0011, busy, period_s);
    thread.stay(1, 0.0007, waiting, period_s);
  }
  for (const CounterRates& loop : sums.loops()) {
    EXPECT_TRUE(loop.rates.empty());
    EXPECT_NE(loop.unknown.find("visits are shorter"), std::string::npos) << loop.unknown;
  }
}

/// If a loop is left and re-entered between two readings, its interval still holds the truth.
TEST(CounterSums, intervals_hold_the_truth_however_a_loop_is_interrupted) {
  std::mt19937 random(7);
  for (const double away_s : {0.00002, 0.0003, 0.004}) {
    const std::vector<std::optional<std::size_t>> around(1);
    CounterSums sums(simple, around, by_address);
    MadeThread thread(sums, 1, 3);
    std::exponential_distribution<double> stay(1 / (away_s * 12));
    std::exponential_distribution<double> away(1 / away_s);
    for (double seconds = 0; seconds < 12;) {
      const double in = stay(random);
      const double out = away(random);
      thread.stay(0, in, busy, period_s);
      thread.stay(elsewhere, out, waiting, period_s);
      seconds += in + out;
    }
    const CounterRates rates = sums.loops().front();
    ASSERT_TRUE(rates.unknown.empty()) << away_s << " " << rates.left;
    for (const auto& [quantity, truth] :
         {std::pair(CounterQuantity::instructions, 9e9), std::pair(CounterQuantity::l3_misses, 1e4)}) {
      const CountedRate* const rate = rates.of(quantity);
      ASSERT_NE(rate, nullptr);
      EXPECT_LE(rate->ci95.low, truth) << away_s;
      EXPECT_GE(rate->ci95.high, truth) << away_s;
    }
  }
}

TEST(CounterSums, groups_that_take_turns_stand_for_all_of_the_time) {
  const std::vector<CounterRow> two = {counter(1, 1, CounterQuantity::cycles), counter(2, 1, CounterQuantity::loads),
                                       counter(3, 2, CounterQuantity::cycles), counter(4, 2, CounterQuantity::stores)};
  const std::vector<std::optional<std::size_t>> around(1);
  CounterSums sums(two, around, by_address);
  MadeThread first(sums, 1, 2);
  MadeThread second(sums, 2, 2);
  for (int turn = 0; turn < 10; ++turn) {
    first.stay(0, 0.1, {3e9, 1e9}, period_s, 0.5);
    second.stay(0, 0.1, {3e9, 4e8}, period_s, 0.3);
  }
  const CounterRates rates = sums.loops().front();
  EXPECT_NEAR(*rates.per_s(CounterQuantity::cycles), 3e9, 1e6);
  EXPECT_NEAR(*rates.per_s(CounterQuantity::loads), 1e9, 1e6);
  EXPECT_NEAR(*rates.per_s(CounterQuantity::stores), 4e8, 1e6);
  EXPECT_NEAR(*rates.per_cycle(CounterQuantity::stores), 4 / 30.0, 1e-4);
}

TEST(CounterSums, kinds_of_cores_are_weighed_by_their_time) {
  const std::vector<CounterRow> two = {
      counter(1, 1, CounterQuantity::cycles, 1, "cpu_core"), counter(2, 1, CounterQuantity::loads, 1, "cpu_core"),
      counter(3, 2, CounterQuantity::cycles, 1, "cpu_atom"), counter(4, 2, CounterQuantity::loads, 1, "cpu_atom"),
      counter(5, 1, CounterQuantity::retiring, 1 / 6.0, "cpu_core")};
  const std::vector<std::optional<std::size_t>> around(1);
  CounterSums sums(two, around, by_address);
  MadeThread large(sums, 1, 3);
  MadeThread small(sums, 2, 2);
  large.stay(0, 3, {4e9, 2e9, 1.2e10}, period_s);
  small.stay(0, 1, {2e9, 4e8}, period_s);
  const CounterRates rates = sums.loops().front();
  EXPECT_NEAR(*rates.per_s(CounterQuantity::loads), 0.75 * 2e9 + 0.25 * 4e8, 1e7);
  EXPECT_NEAR(*rates.per_cycle(CounterQuantity::loads), (3 * 2e9 + 4e8) / (3 * 4e9 + 2e9), 1e-3);
  EXPECT_EQ(rates.of(CounterQuantity::retiring), nullptr);  // of a quarter of the time nothing is known
}

TEST(CounterSums, readings_of_another_life_or_that_do_not_fit_are_no_intervals) {
  const std::vector<std::optional<std::size_t>> around(1);
  CounterSums sums(simple, around, by_address);
  MadeThread thread(sums, 1, 3);
  for (int life = 0; life < 10; ++life) {
    thread.stay(0, 0.05, busy, period_s);
    thread.begin_anew();
  }
  MadeThread damaged(sums, 1, 2);
  damaged.stay(0, 1, {1e12, 1e12}, period_s);
  MadeThread unknown(sums, 7, 3);
  unknown.stay(0, 1, busy, period_s);
  const CounterRates rates = sums.loops().front();
  EXPECT_NEAR(*rates.per_s(CounterQuantity::cycles), 3e9, 1e6);
  EXPECT_LE(rates.seconds, 0.5);
}

TEST(CounterSums, too_few_readings_give_no_rate) {
  const std::vector<std::optional<std::size_t>> around(1);
  CounterSums sums(simple, around, by_address);
  MadeThread thread(sums, 1, 3);
  thread.stay(0, 0.012, busy, period_s);
  const CounterRates rates = sums.loops().front();
  EXPECT_TRUE(rates.rates.empty());
  EXPECT_NE(rates.unknown.find("too few"), std::string::npos);
}

CounterRates with(const std::vector<std::pair<CounterQuantity, double>>& per_cycle) {
  CounterRates rates;
  for (const auto& [quantity, value] : per_cycle) {
    rates.rates.push_back({profile::name_of(quantity), quantity, value * 3e9, {value * 2.9e9, value * 3.1e9}, value});
  }
  return rates;
}

TEST(CounterRates, flops_are_those_of_all_widths) {
  CounterRates rates = with({{CounterQuantity::flops_scalar, 1},
                             {CounterQuantity::flops_sse_double, 0},
                             {CounterQuantity::flops_sse_single, 0},
                             {CounterQuantity::flops_avx2_double, 3},
                             {CounterQuantity::flops_avx2_single, 0}});
  EXPECT_DOUBLE_EQ(*rates.flops().per_s, 12e9);
  EXPECT_DOUBLE_EQ(*rates.packed(), 0.75);
  rates.rates.pop_back();
  EXPECT_FALSE(rates.flops().per_s);
  EXPECT_FALSE(rates.flops().unknown.empty());
  EXPECT_DOUBLE_EQ(*with({{CounterQuantity::flops, 2}}).flops().per_s, 6e9);
}

TEST(CounterRates, slots_add_up_whichever_of_them_are_counted) {
  const auto expect = [](const std::optional<TopDown>& found) {
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->retiring, 0.4, 1e-9);
    EXPECT_NEAR(found->frontend, 0.1, 1e-9);
    EXPECT_NEAR(found->bad_speculation, 0.2, 1e-9);
    EXPECT_NEAR(found->backend, 0.3, 1e-9);
  };
  using Q = CounterQuantity;
  expect(with({{Q::retiring, 0.4}, {Q::frontend_bound, 0.1}, {Q::issued, 0.5}, {Q::recovery, 0.1}}).top_down());
  expect(with({{Q::retiring, 0.4}, {Q::frontend_bound, 0.1}, {Q::backend_bound, 0.3}}).top_down());
  expect(with({{Q::retiring, 0.4}, {Q::frontend_bound, 0.1}, {Q::bad_speculation, 0.2}}).top_down());
  EXPECT_FALSE(with({{Q::retiring, 0.4}, {Q::frontend_bound, 0.1}}).top_down());
}

TEST(CountedEvidence, cycles_go_to_what_they_were_counted_for) {
  using Q = CounterQuantity;
  const CounterRates rates = with({{Q::retiring, 0.2},
                                   {Q::frontend_bound, 0.05},
                                   {Q::bad_speculation, 0.05},
                                   {Q::stalls_load, 0.6},
                                   {Q::stalls_l1d_miss, 0.5},
                                   {Q::stalls_l2_miss, 0.45},
                                   {Q::stalls_l3_miss, 0.4}});
  models::CycleEvidence evidence;
  evidence.elapsed_s = 10;
  ASSERT_TRUE(tell_of_cycles(rates, 10, std::nullopt, evidence));
  const models::CycleAccount account = models::account(evidence);
  EXPECT_NEAR(account[models::CycleClass::committing].value(), 2, 1e-9);
  EXPECT_NEAR(account[models::CycleClass::frontend].value(), 0.5, 1e-9);
  EXPECT_NEAR(account[models::CycleClass::branch].value(), 0.5, 1e-9);
  EXPECT_NEAR(account[models::CycleClass::memory].value(), 4, 1e-9);
  EXPECT_NEAR(account[models::CycleClass::l1d].value(), 1, 1e-9);
  EXPECT_NEAR(account[models::CycleClass::fpu].value(), 1, 1e-9);
  EXPECT_NEAR(account.total(), 10, 1e-9);
}

TEST(CountedEvidence, without_stalls_the_back_end_is_shared_as_samples_stand) {
  using Q = CounterQuantity;
  const CounterRates rates = with({{Q::retiring, 0.5}, {Q::frontend_bound, 0}, {Q::backend_bound, 0.5}});
  models::CycleEvidence evidence;
  evidence.elapsed_s = 8;
  ASSERT_TRUE(tell_of_cycles(rates, 8, models::Standing{0.2, 0.6, 0, 0}, evidence));
  const models::CycleAccount account = models::account(evidence);
  EXPECT_NEAR(account[models::CycleClass::committing].value(), 4, 1e-9);
  EXPECT_NEAR(account[models::CycleClass::data].value(), 3, 1e-9);
  EXPECT_NEAR(account[models::CycleClass::fpu].value(), 1, 1e-9);
  EXPECT_FALSE(tell_of_cycles(with({{Q::cycles, 1}}), 8, std::nullopt, evidence));
}

TEST(CountedEvidence, without_stalls_and_samples_the_back_end_is_not_divided) {
  using Q = CounterQuantity;
  models::CycleEvidence evidence;
  evidence.elapsed_s = 8;
  evidence.data_levels = models::LevelShares{1, 0, 0, 0};  // of the model
  ASSERT_TRUE(tell_of_cycles(with({{Q::retiring, 0.5}, {Q::frontend_bound, 0}, {Q::backend_bound, 0.5}}), 8,
                             std::nullopt, evidence));
  const models::CycleAccount account = models::account(evidence);
  EXPECT_NEAR(account[models::CycleClass::frontend].value(), 0, 1e-9) << "counted";
  EXPECT_FALSE(account[models::CycleClass::fpu]);
  EXPECT_FALSE(account[models::CycleClass::l1d]);
  EXPECT_NEAR(account[models::CycleClass::unattributed].value(), 4, 1e-9);
}

TEST(CountedEvidence, bytes_are_known_where_both_ways_are_or_nothing_is_stored) {
  using Q = CounterQuantity;
  const auto both = counted_bytes(with({{Q::l1d_fills, 0.01}, {Q::l1d_writebacks, 0.005}, {Q::l2_fills, 0.01}}));
  EXPECT_NEAR(*both[models::Unit::l2], 64 * 0.015 * 3e9, 1);
  EXPECT_FALSE(both[models::Unit::l3]);
  EXPECT_FALSE(both[models::Unit::l1d]);
  const auto read = counted_bytes(with({{Q::loads, 1}, {Q::stores, 0.001}, {Q::l2_fills, 0.01}, {Q::l3_misses, 0.02}}));
  EXPECT_NEAR(*read[models::Unit::l3], 64 * 0.01 * 3e9, 1);
  EXPECT_NEAR(*read[models::Unit::memory], 64 * 0.02 * 3e9, 1);
  const auto stored = counted_bytes(with({{Q::loads, 1}, {Q::stores, 0.5}, {Q::l3_misses, 0.02}}));
  EXPECT_FALSE(stored[models::Unit::memory]);
}

TEST(CountedEvidence, bytes_from_memory_are_at_least_those_that_are_counted) {
  EXPECT_TRUE(takes_counted(models::Unit::memory, 2e9, std::nullopt));
  EXPECT_TRUE(takes_counted(models::Unit::memory, 2e9, 1e9));
  EXPECT_FALSE(takes_counted(models::Unit::memory, 2e9, 3e9));
  EXPECT_TRUE(takes_counted(models::Unit::l3, 2e9, 3e9));
}

}  // namespace
}  // namespace crosstalk::attribution::counter_sums_test
