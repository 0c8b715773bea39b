// SPDX-License-Identifier: Apache-2.0
// Each estimator is unbiased if its assumptions hold, and its intervals hold the truth as often as they claim.
// Otherwise its known error is checked, so that it is not trusted there (docs/accuracy.md has the figures).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/published.h"
#include "tests/simulation/study.h"

namespace crosstalk::simulation::estimators_test {
namespace {

using attribution::Estimator;

constexpr std::uint32_t runs = 200;
constexpr double largest_bias = 0.02;  // of the true total
constexpr double least_coverage = 0.90, most_coverage = 0.98;

struct Case {
  const char* scenario;
  std::vector<std::string> right;  // estimators whose assumptions hold there
  std::uint32_t count = runs;
};

std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.scenario; }

const Estimator& named(const std::string& name) { return **attribution::find_estimator(name); }

std::vector<Score> scores_of(const Case& c, const std::vector<std::string>& names, std::uint32_t count) {
  std::vector<Estimator> chosen;
  chosen.reserve(names.size());
  for (const std::string& name : names) {
    chosen.push_back(named(name));
  }
  return judge(scenario(c.scenario), chosen, count);
}

class Right : public testing::TestWithParam<Case> {};

TEST_P(Right, UnbiasedAndCovered) {
  const std::vector<Score> scores = scores_of(GetParam(), GetParam().right, GetParam().count);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    SCOPED_TRACE(GetParam().right[i]);
    const Score& score = scores[i];
    EXPECT_EQ(score.runs, GetParam().count);
    EXPECT_GT(score.true_s, 0);
    EXPECT_GE(score.cells, std::uint64_t{runs});
    EXPECT_LT(std::abs(score.bias), largest_bias);
    EXPECT_LT(score.misplaced, largest_bias);
    EXPECT_GE(score.coverage, least_coverage);
    EXPECT_LE(score.coverage, most_coverage);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Estimators, Right,
    testing::Values(Case{"ping_pong", {"post_stratified", "board_ipw"}},
                    Case{"counters", {"post_stratified", "board_ipw", "next_access", "next_store"}},
                    Case{"false_sharing", {"post_stratified", "board_ipw"}},
                    Case{"mixed", {"post_stratified", "board_ipw"}},
                    // 97.9 % are covered: 200 runs tell it only to within a point.
                    Case{"ring", {"post_stratified", "next_store"}, 5 * runs}, Case{"whole_lines", {"post_stratified"}},
                    Case{"all_to_all", {"post_stratified"}},
                    // A bias of 1.1 +-0.3 %: 200 runs tell it only to within 1.3 points, 1000 to within 0.6.
                    Case{"own_words", {"post_stratified"}, 5 * runs},
                    Case{"one_writer", {"post_stratified", "next_store"}},
                    Case{"waiting_writer", {"post_stratified", "next_store"}}, Case{"lost_traps", {"post_stratified"}},
                    Case{"short_run", {"post_stratified", "board_ipw"}}, Case{"many_lines", {"post_stratified"}}),
    [](const auto& instance) { return std::string(instance.param.scenario); });

// Neighbours in one word of eight bytes: a change is known of whole words only, so the last storing thread is not
// always known. 1000 runs: +2.5 +-0.4 %.
TEST(PackedWords, AreNearlyRight) {
  const Score score = scores_of({"packed_words", {}}, {"post_stratified"}, runs).front();
  EXPECT_LT(std::abs(score.bias), 0.04);
  EXPECT_LT(score.misplaced, 0.025);
  EXPECT_GE(score.coverage, least_coverage);
  EXPECT_LE(score.coverage, most_coverage);
}

// Numbers of communications, by samples that stand for accesses. There are enough runs that three standard errors of
// the bias are at most 3 % of the truth, and so is the bias. Some -1 to -3 % are in the scenarios' nature: traps delay
// the partner, and accesses by others between an access and the watch that its sample opens are not seen.
constexpr double largest_count_bias = 0.03;

class Counted : public testing::TestWithParam<Case> {};

TEST_P(Counted, CommunicationsAreNearlyRight) {
  const Score score = scores_of(GetParam(), {"post_stratified"}, GetParam().count).front();
  EXPECT_GT(score.true_s, 10'000);
  EXPECT_LT(3 * score.bias_error, largest_count_bias);
  EXPECT_LT(std::abs(score.bias), largest_count_bias);
  EXPECT_LT(score.misplaced, largest_count_bias);
  EXPECT_GE(score.coverage, least_coverage);
}

INSTANTIATE_TEST_SUITE_P(Estimators, Counted,
                         testing::Values(Case{"accesses_ping_pong", {}, 50}, Case{"accesses_counters", {}, 50},
                                         Case{"accesses_mixed", {}, 240}, Case{"accesses_ring", {}, 70},
                                         Case{"accesses_one_writer", {}, 60}, Case{"accesses_all_to_all", {}, 60},
                                         Case{"accesses_skid", {}, 60}, Case{"accesses_skid_ring", {}, 100},
                                         Case{"ops_ping_pong", {}, 100}, Case{"ops_mixed", {}, 320},
                                         Case{"ops_one_writer", {}, 100}),
                         [](const auto& instance) { return std::string(instance.param.scenario); });

// Loads below a latency threshold have neither a sample nor a count. A thread that takes its lines over by stores is
// still followed, but not a thread that only loads, and the number would be a fourth of the truth. A report cannot tell
// these programs apart: it gives no number, and the reason.
TEST(SlowLoads, GiveNoNumberOfCommunications) {
  for (const char* name : {"accesses_slow", "accesses_slow_ring"}) {
    SCOPED_TRACE(name);
    const SimulatedRun run = simulate(scenario(name), 1);
    const attribution::Matrix matrix = reported_of(run, named("post_stratified"));
    ASSERT_FALSE(matrix.empty());
    double detections = 0;
    for (const attribution::Cell& cell : matrix) {
      detections += cell.detections();
      for (const attribution::Amount* amount : {&cell.true_sharing, &cell.false_sharing}) {
        EXPECT_FALSE(amount->count);
        EXPECT_FALSE(amount->count_ci95);
        EXPECT_FALSE(amount->cost_s);
        EXPECT_NE(amount->count_unknown.find("loads alone that took"), std::string::npos) << amount->count_unknown;
      }
    }
    EXPECT_GT(detections, 100);
  }
}

// The same samples without a threshold do give numbers.
TEST(SlowLoads, AreWithheldForTheirThresholdAlone) {
  for (const attribution::Cell& cell : reported_of(simulate(scenario("accesses_ring"), 1), named("post_stratified"))) {
    EXPECT_TRUE(cell.true_sharing.count) << cell.true_sharing.count_unknown;
  }
}

// A micro-operation sample that accesses no memory counts as no access.
TEST(Counting, NothingIsFoundWhereNothingIsShared) {
  const SimulatedRun run = simulate(scenario("ops_private"), 1);
  EXPECT_TRUE(std::any_of(run.samples.begin(), run.samples.end(),
                          [](const profile::SampleRow& row) { return row.address == 0; }));
  EXPECT_GT(run.watches.size(), 20U);
  EXPECT_TRUE(estimate_of(run, named("post_stratified")).empty());
}

/// A scenario in which an estimator is biased, with the range of its bias as a fraction of the true total.
struct Known {
  const char* scenario;
  const char* estimator;
  double low, high;
};

std::ostream& operator<<(std::ostream& out, const Known& k) { return out << k.scenario << " " << k.estimator; }

class KnownWrong : public testing::TestWithParam<Known> {};

TEST_P(KnownWrong, IsBiasedByAsMuch) {
  constexpr std::uint32_t few = 20;
  const Known& known = GetParam();
  const Score score = scores_of({known.scenario, {}}, {known.estimator}, few).front();
  EXPECT_GT(score.bias, known.low);
  EXPECT_LT(score.bias, known.high);
}

INSTANTIATE_TEST_SUITE_P(
    Estimators, KnownWrong,
    testing::Values(
        Known{"counters", "board", -0.60, -0.35},        // unarmed threads are not extrapolated
        Known{"mixed", "board", -0.99, -0.80},           // nor are words that were not drawn
        Known{"one_writer", "board", 0.3, 1.0},          // each reader is blamed for the next one
        Known{"all_to_all", "board_ipw", 1.2, 2.0},      // every thread that comes is charged
        Known{"ping_pong", "next_access", -1, -0.8},     // the time is in the loads
        Known{"all_to_all", "next_store", -0.3, -0.05},  // some of it is in the stores
        Known{"spinning", "post_stratified", 0.5, 1.3},  // looking is no communication
        // Samples that count: published, each reader of a line is counted at each of its samples.
        Known{"accesses_one_writer", "board", 2.0, 6.0},
        // Stores by others between a look and its watch are not seen: 80 runs, -9.4 +-1.2 %. If every look
        // at an exchanged line were one communication, there would be twenty times as many.
        Known{"accesses_spinning", "post_stratified", -0.14, -0.04},
        // A thread comes back to another word of the line, which is not watched.
        Known{"accesses_whole_lines", "post_stratified", 4.0, 10.0},
        // A load that was left out is not followed to the communication that comes next.
        Known{"accesses_slow_ring", "post_stratified", -0.85, -0.70},
        // Skid in time favours long operations: private work rather than quick accesses.
        Known{"accesses_shadow", "post_stratified", -0.14, -0.07},
        Known{"accesses_long_shadow", "post_stratified", -0.34, -0.24},
        // Nothing stands for samples that were dropped.
        Known{"accesses_no_address", "post_stratified", -0.32, -0.22},
        // A late watch begins at a random moment of the line. Some visits begin with what others go on with.
        Known{"accesses_late", "post_stratified", -0.1, 0.45}),
    [](const auto& instance) { return std::string(instance.param.scenario) + "_" + instance.param.estimator; });

// Clocks that expire with the kernel's tick expire together, and one thread's is always the first: the others have
// their watches, too, and no direction is missed.
TEST(Ticks, LeaveNoDirectionOut) {
  const Scenario& ticks = scenario("ticks");
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> found;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> truth;
  std::vector<double> watches(ticks.threads, 0);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SimulatedRun run = simulate(ticks, seed);
    for (const profile::WatchRow& watch : run.watches) {
      watches[watch.thread.value] += 1;
    }
    for (const auto& [pair, sorts] : run.truth) {
      truth[pair] += sorts[0].cost_s + sorts[1].cost_s;
    }
    for (const attribution::Cell& cell : estimate_of(run, named("post_stratified"))) {
      found[{cell.producer, cell.consumer}] += cell.cost();
    }
  }
  EXPECT_GT(*std::min_element(watches.begin(), watches.end()), 0.1 * *std::max_element(watches.begin(), watches.end()));
  ASSERT_EQ(truth.size(), 4U);
  for (const auto& [pair, cost_s] : truth) {
    EXPECT_NEAR(found[pair], cost_s, 0.15 * cost_s) << pair.first << " to " << pair.second;
  }
}

// Some twenty watches a run, of suspected lines of eight threads and pairs. The ratio of detections to watches is by
// nature some 3 % low: watches that see nothing last longest, so few of them fit into a run, and the fewer there are
// the more each counts. Intervals, and limits of unseen sharing, account for the small number.
TEST(FewWatches, AreCoveredAndNearlyUnbiased) {
  const Score score = scores_of({"one_register", {}}, {"post_stratified"}, runs).front();
  EXPECT_GT(score.bias, -0.10);
  EXPECT_LT(score.bias, largest_bias);
  EXPECT_LT(score.misplaced, largest_bias);
  EXPECT_GE(score.coverage, least_coverage);
  EXPECT_LE(score.coverage, most_coverage);
  EXPECT_LT(score.width, 5);
}

// 24 of 63 other threads are armed at a time, and a thread has some five watches. An event weighs so much that 40 runs
// tell the bias only to within six points (it is -3.4 +-1.1 % in 400). Armed.AnEventIsNotCutToTheFewWatchesOfItsThread
// tests that nothing is cut.
TEST(ManyThreads, AreCovered) {
  const Score score = scores_of({"many_threads", {}}, {"post_stratified"}, 40).front();
  EXPECT_GT(score.bias, -0.15);
  EXPECT_LT(score.bias, 0.15);
  EXPECT_GE(score.coverage, least_coverage);
  EXPECT_LE(score.coverage, most_coverage);
}

// Lines that a thread's successors reuse are suspected like exchanged ones, and watched less often. Threads with one
// sample or none, and those with a hundred, tell together which line is which. Only few of the thousands of pairs are
// seen at all, so the sum is judged.
TEST(ThreadsThatComeAndGo, AreCoveredTogether) {
  for (const char* name : {"brief_threads", "lasting_threads"}) {
    SCOPED_TRACE(name);
    const Score score = scores_of({name, {}}, {"post_stratified"}, 100).front();
    EXPECT_GT(score.bias, -0.10);
    EXPECT_LT(score.bias, 0.10);
    EXPECT_GE(score.total_coverage, least_coverage);
  }
}

/// The scores of the default and the published estimator at a point of the published study.
std::vector<Score> published_scores(const Scenario& point, std::uint32_t count) {
  return judge(point, std::vector{named("post_stratified"), named("board")}, count);
}

const Scenario& published(const std::string& name) {
  const auto list = published_scenarios();
  const auto found = std::find_if(list.begin(), list.end(), [&](const Scenario& point) { return point.name == name; });
  EXPECT_NE(found, list.end()) << name;
  return found != list.end() ? *found : list.front();
}

/// The mean of several biases, weighted by what they rest on.
struct MeanBias {
  double weighted = 0, weights = 0;
  void add(const Score& score) {
    weighted += score.detections * score.bias;
    weights += score.detections;
  }
  [[nodiscard]] double value() const { return weighted / weights; }
};

// Points of the published study (docs/accuracy.md has all of them): shares and periods, at four threads. A point by
// itself may be off by chance, all together not.
TEST(Published, IsBeatenByPebsAndByIbs) {
  constexpr std::uint32_t few = 8;
  std::map<Source, MeanBias> means;
  std::size_t judged = 0;
  for (const Scenario& point : published_scenarios()) {
    const bool usual = point.threads == 4 && point.parts.size() == 2 && point.parts.front().share >= 0.5;
    if (!usual || point.observer.registers != 4 || !point.name.ends_with("_periods")) {
      continue;
    }
    SCOPED_TRACE(std::string(point.name));
    const std::vector<Score> scores = published_scores(point, few);
    EXPECT_TRUE(scores[0].counts);
    EXPECT_LT(std::abs(scores[0].bias), largest_bias + 3 * scores[0].bias_error);
    EXPECT_LT(std::abs(scores[0].bias), std::abs(scores[1].bias) / 2);
    means[point.observer.source].add(scores[0]);
    ++judged;
  }
  EXPECT_EQ(judged, 12U);
  for (const auto& [source, mean] : means) {
    EXPECT_LT(std::abs(mean.value()), largest_bias);
  }
}

// A line that others can take while the access that has just fetched it lasts is theirs, unseen, before the watch
// begins: once in as many accesses as there are lines, where nothing is private.
TEST(Published, MissesWhatIsTakenBeforeAnAccessEnds) {
  constexpr std::uint32_t few = 3;
  Scenario point = published("published_accesses_4_threads_100_shared_4_registers_1_periods");
  const Score at_end = published_scores(point, few).front();
  EXPECT_LT(std::abs(at_end.bias), largest_bias);
  point.latencies.at_end = false;
  const Score at_begin = published_scores(point, few).front();
  EXPECT_NEAR(at_begin.bias, -1.0 / point.parts.front().lines, largest_bias);
}

/// What is varied beyond the published study, with the range of the default estimator's bias but for chance.
struct Varied {
  const char *source, *what;  // parts of the point's name
  double low = -largest_bias, high = largest_bias;
  bool nearer = true;  // than the published estimator
};

std::ostream& operator<<(std::ostream& out, const Varied& v) { return out << v.source << v.what; }

class BeyondPublished : public testing::TestWithParam<Varied> {};

TEST_P(BeyondPublished, IsBiasedByAsMuch) {
  constexpr std::uint32_t few = 4;
  const Varied& varied = GetParam();
  const std::string what = varied.what;
  Scenario point =
      published(std::string("published_") + varied.source + "_4_threads_50_shared_4_registers_1_periods" + what);
  point.duration_ns /= 2;
  const std::vector<Score> scores = published_scores(point, few);
  const double error = 2 * scores[0].bias_error;
  EXPECT_GT(scores[0].bias, varied.low - error) << error;
  EXPECT_LT(scores[0].bias, varied.high + error) << error;
  EXPECT_EQ(std::abs(scores[0].bias) < std::abs(scores[1].bias), varied.nearer) << scores[1].bias;
  EXPECT_EQ(scores[0].withheld.empty(),
            what.find("latency") == std::string::npos && what.find("probe") == std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Estimators, BeyondPublished,
    testing::Values(Varied{"accesses", "_pairs"}, Varied{"ops", "_pairs"},
                    // Which access is sampled is as much by chance as before.
                    Varied{"accesses", "_skid_1"}, Varied{"accesses", "_pairs_skid_10"},
                    Varied{"accesses", "_skid_100"}, Varied{"accesses", "_pairs_skid_instruction"},
                    // The sample passes over accesses that follow a quick one at once.
                    Varied{"accesses", "_skid_20ns", -0.10, -0.02},
                    Varied{"accesses", "_pairs_skid_200ns", -0.20, -0.06},
                    // The watch of a load begins after its own store: nobody comes back to the store.
                    Varied{"accesses", "_skid_address"}, Varied{"accesses", "_pairs_skid_address"},
                    Varied{"accesses", "_late_80us"}, Varied{"accesses", "_pairs_late_80us", -0.02, 0.06},
                    // Of slow loads it is not known what follows the others, but stores are all sampled.
                    Varied{"accesses", "_latency_150ns", -0.60, -0.35, false},
                    Varied{"accesses", "_pairs_latency_250ns", -0.05, 0.05},
                    // The board is a hint: without it less is seen.
                    Varied{"accesses", "_board_16", -0.10, 0.10}, Varied{"ops", "_pairs_board_64", -0.05, 0.05},
                    // A probe does not know whether the thread would have come back.
                    Varied{"accesses", "_method_probe", -0.80, 0.80}),
    [](const auto& instance) { return std::string(instance.param.source) + instance.param.what; });

TEST(Wrong, NobodyFindsWhatIsNotThere) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const SimulatedRun run = simulate(scenario("private_data"), seed);
    EXPECT_TRUE(run.truth.empty());
    EXPECT_GT(run.watches.size(), 50U);
    for (const Estimator& estimator : attribution::estimators()) {
      EXPECT_TRUE(estimate_of(run, estimator).empty()) << estimator.name;
    }
  }
}

// One watch has no spread: there is a detection and no amount, for every estimator.
TEST(TooFew, IsNoNumber) {
  SimulatedRun run = simulate(scenario("counters"), 1);
  const auto exchanged = std::find_if(run.watches.begin(), run.watches.end(), [&](const profile::WatchRow& watch) {
    return std::any_of(run.traps.begin(), run.traps.end(), [&](const profile::TrapRow& trap) {
      return trap.watch == watch.id && trap.thread != watch.thread;
    });
  });
  ASSERT_NE(exchanged, run.watches.end());
  run.watches = {*exchanged};
  std::erase_if(run.traps, [&](const profile::TrapRow& trap) { return trap.watch != run.watches[0].id; });
  for (const Estimator& estimator : attribution::estimators()) {
    SCOPED_TRACE(std::string(estimator.name));
    const attribution::Matrix matrix = estimate_of(run, estimator);
    ASSERT_FALSE(matrix.empty());
    for (const attribution::Cell& cell : matrix) {
      for (const attribution::Amount* amount : {&cell.true_sharing, &cell.false_sharing}) {
        EXPECT_FALSE(amount->cost_s);
        EXPECT_FALSE(amount->cost_ci95);
        EXPECT_FALSE(amount->count);
      }
      EXPECT_GT(cell.detections(), 0);
    }
  }
}

}  // namespace
}  // namespace crosstalk::simulation::estimators_test
