// SPDX-License-Identifier: Apache-2.0
#include "attribution/stages/watch_sight.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attribution/comparison/compare.h"
#include "attribution/comparison/condition.h"
#include "attribution/findings.h"
#include "tests/attribution/rows.h"

namespace crosstalk::attribution::test {
namespace {

using profile::TrialVerdict;
using Sees = WatchSight::Sees;

profile::Session session_of(TrialVerdict verdict, std::uint32_t silent = 0) {
  profile::Session session;
  session.watch_trial = {verdict, silent, 4, "the cause", "the remedy"};
  const bool inside = is_worth_arming(session.watch_trial) && (silent & profile::trial_sigtrap) == 0;
  session.config.watchpoints_allowed = inside ? 1 : 0;
  return session;
}

/// Two threads ran, nothing was seen on 500 watched lines.
Analysis analysis_with(const profile::Session& session, std::uint64_t fruitless = 0) {
  Analysis a;
  for (std::uint32_t i = 0; i < 2; ++i) {
    ThreadSummary thread;
    thread.index = i;
    thread.cpu_s = 1;
    thread.samples = 250;
    a.threads.push_back(thread);
  }
  a.cpu_s = 2;
  a.sampling.samples = 500;
  a.session = session;
  a.sight = watch_sight(session, {}, fruitless);
  a.sampling.armed = a.sight.sees == Sees::nothing && fruitless == 0 ? 0 : 500;
  return a;
}

TEST(WatchSight, FollowsFromTheSelfTest) {
  EXPECT_EQ(watch_sight(session_of(TrialVerdict::fires), {}, 0).sees, Sees::everything);
  for (const TrialVerdict verdict : {TrialVerdict::never, TrialVerdict::not_opened, TrialVerdict::untestable}) {
    const WatchSight sight = watch_sight(session_of(verdict), {}, 0);
    EXPECT_EQ(sight.sees, Sees::nothing);
    EXPECT_EQ(sight.because, "the cause");
    EXPECT_EQ(sight.remedy, "the remedy");
    EXPECT_FALSE(sight.found_late);
  }
  const WatchSight part = watch_sight(session_of(TrialVerdict::partly, profile::trial_locked), {}, 0);
  EXPECT_EQ(part.sees, Sees::part);
  EXPECT_EQ(part.unseen, "locked updates");
}

TEST(WatchSight, SignalsConcernOnlyWhoIsToldByThem) {
  profile::Session inside = session_of(TrialVerdict::partly, profile::trial_sigtrap);
  EXPECT_EQ(watch_sight(inside, {}, 0).sees, Sees::nothing);
  EXPECT_EQ(watch_sight(inside, {}, 0).remedy, "record with --observer");
  inside.config.watchpoints_allowed = 1;  // as of an observer outside
  EXPECT_EQ(watch_sight(inside, {}, 0).sees, Sees::everything);
}

TEST(WatchSight, OfProbesIsPartAndSaysWhyThereAreNoWatches) {
  profile::Session probed = session_of(TrialVerdict::fires);
  probed.config.method = profile::Method::probe;
  probed.method_choice = "--method probe asked for it";
  const WatchSight sight = watch_sight(probed, {}, 0);
  EXPECT_EQ(sight.sees, Sees::part);
  EXPECT_EQ(sight.because,
            "it probed lines (read them twice while a thread stood still) instead of watching them, as --method probe "
            "asked for it");
}

TEST(WatchSight, IsNoneWhereNoMethodWorked) {
  profile::Session none = session_of(TrialVerdict::fires);
  none.config.method = profile::Method::none;
  none.method_choice = "--watchpoints 0 leaves no debug register";
  EXPECT_EQ(watch_sight(none, {}, 0).sees, Sees::nothing);
  EXPECT_EQ(watch_sight(none, {}, 0).because, "--watchpoints 0 leaves no debug register");
}

TEST(WatchSight, OfOlderProfilesIsWhatTheirRecorderWarnedOf) {
  const profile::Session old;
  EXPECT_EQ(watch_sight(old, {}, 0).sees, Sees::everything);
  const std::vector<profile::MessageRow> messages = {{"watchpoints_unavailable", "no watchpoints (a reason)", 1}};
  const WatchSight sight = watch_sight(old, messages, 0);
  EXPECT_EQ(sight.sees, Sees::nothing);
  EXPECT_EQ(sight.because, "no watchpoints (a reason)");
  profile::Session imported;
  imported.source = profile::imported_source;
  EXPECT_EQ(watch_sight(imported, messages, 0).sees, Sees::everything) << "nobody was to watch anything there";
}

TEST(WatchSight, HundredsOfWatchesWithoutATrapAreTheSameFaultFoundLate) {
  const profile::Session session = session_of(TrialVerdict::fires);
  EXPECT_EQ(watch_sight(session, {}, enough_telling_watches - 1).sees, Sees::everything);
  const WatchSight late = watch_sight(session, {}, enough_telling_watches);
  EXPECT_EQ(late.sees, Sees::nothing);
  EXPECT_TRUE(late.found_late);
  EXPECT_NE(late.because.find("used 200 lines while watchpoints were on them"), std::string::npos) << late.because;
}

class CountersThat : public UnknownCode {
 public:
  explicit CountersThat(bool are_stored_back) : are_stored_back_(are_stored_back) {}
  bool stores_back(ThreadId /*thread*/, std::uint64_t /*time_ns*/, std::uint64_t /*ip*/) override {
    return are_stored_back_;
  }

 private:
  bool are_stored_back_;
};

/// Watches of one line, and samples on it.
class SharedLine {
 public:
  SharedLine& watched(std::uint64_t time_ns, std::uint32_t armed = 1) {
    profile::WatchRow& row = watches_.emplace_back();
    row.id = WatchId{static_cast<std::uint32_t>(watches_.size())};
    row.thread = ThreadId{0};
    row.line = line;
    row.time_ns = time_ns;
    row.armed = armed;
    return *this;
  }
  SharedLine& sampled(std::uint32_t thread, std::uint64_t time_ns, AccessKind kind, std::uint64_t offset = 0) {
    profile::SampleRow& row = samples_.emplace_back();
    row.thread = ThreadId{thread};
    row.time_ns = time_ns;
    row.address = line + offset;
    row.access = kind;
    return *this;
  }
  /// All loads are of counters, which are stored next.
  SharedLine& counted() {
    stores_back_ = true;
    return *this;
  }
  [[nodiscard]] std::uint64_t telling() const {
    const auto threads = make_threads(3);
    CountersThat code(stores_back_);
    TellingWatches telling(watches_, threads, code);
    for (const profile::SampleRow& sample : samples_) {
      telling.add(sample);
    }
    return telling.count();
  }

 private:
  std::vector<profile::WatchRow> watches_;
  std::vector<profile::SampleRow> samples_;
  bool stores_back_ = false;
};

TEST(TellingWatches, AreThoseOfLinesThatThreadsExchangeMeanwhile) {
  const auto used = [] {
    return SharedLine()
        .sampled(0, 10, AccessKind::load)
        .sampled(1, 20, AccessKind::store, 8)
        .sampled(0, 90, AccessKind::load)
        .sampled(1, 80, AccessKind::load);
  };
  EXPECT_EQ(used().watched(50).watched(60).telling(), 2U);
  EXPECT_EQ(used().watched(15).watched(85).telling(), 0U) << "only one thread is known to be there then";
  EXPECT_EQ(used().watched(50, 0).telling(), 0U) << "no other thread was armed";
}

TEST(TellingWatches, AreOfCountersThatAreSampledAtTheirLoadsAlone) {
  const auto used = [] {
    return SharedLine()
        .sampled(0, 10, AccessKind::load)
        .sampled(1, 20, AccessKind::load, 8)
        .sampled(0, 90, AccessKind::load)
        .sampled(1, 80, AccessKind::load);
  };
  EXPECT_EQ(used().watched(50).telling(), 0U);
  EXPECT_EQ(used().watched(50).counted().telling(), 1U);
}

TEST(TellingWatches, AreNoneOfLinesThatAreOnlyReadOrUsedInTurn) {
  EXPECT_EQ(SharedLine()
                .sampled(0, 10, AccessKind::load)
                .sampled(1, 20, AccessKind::load)
                .sampled(0, 90, AccessKind::load)
                .sampled(1, 80, AccessKind::load)
                .watched(50)
                .telling(),
            0U);
  EXPECT_EQ(SharedLine()
                .sampled(0, 10, AccessKind::store)
                .sampled(0, 40, AccessKind::store)
                .sampled(1, 60, AccessKind::store)
                .sampled(1, 80, AccessKind::store)
                .watched(50)
                .watched(30)
                .telling(),
            0U);
  EXPECT_EQ(SharedLine()
                .sampled(0, 10, AccessKind::store)
                .sampled(1, 20, AccessKind::store, 64)
                .sampled(0, 90, AccessKind::store)
                .sampled(1, 95, AccessKind::store, 64)
                .watched(50)
                .telling(),
            0U)
      << "two lines";
}

TEST(BlindFindings, TheFirstSentenceIsThatNothingCouldBeWatched) {
  for (const TrialVerdict verdict : {TrialVerdict::never, TrialVerdict::not_opened, TrialVerdict::untestable}) {
    const auto findings = findings_of(analysis_with(session_of(verdict)));
    EXPECT_EQ(findings[0].sentence,
              "Crosstalk could not watch memory here, so nothing can be said about communication between threads: the "
              "cause. To see it: the remedy.");
    EXPECT_EQ(findings[0].kind, "blind");
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.sentence.find("was seen"), std::string::npos) << finding.sentence;
    }
  }
}

TEST(BlindFindings, FoundLateTheyComeBeforeWhatWasFoundInOtherWays) {
  Analysis a = analysis_with(session_of(TrialVerdict::fires), 300);
  ObjectRow object;
  object.name = "counters";
  Cell cell;
  cell.consumer = 1;
  cell.true_sharing.seen = 9;
  cell.true_sharing.detections = 9;
  object.cells = {cell};
  a.communication.objects.push_back(object);
  const auto findings = findings_of(a);
  ASSERT_GE(findings.size(), 2U);
  EXPECT_EQ(findings[0].kind, "blind");
  EXPECT_NE(findings[0].sentence.find("used 300 lines while watchpoints were on them"), std::string::npos)
      << findings[0].sentence;
  EXPECT_NE(findings[1].sentence.find("`counters`"), std::string::npos) << findings[1].sentence;
}

TEST(BlindFindings, OfPartSightNameTheAccessesThatGoUnseen) {
  Analysis a = analysis_with(session_of(TrialVerdict::partly, profile::trial_locked));
  a.communication.unseen = Unseen{{0.001, 0.001}, {}};
  const auto findings = findings_of(a);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].kind, "none");
  EXPECT_EQ(findings[0].sentence.find("limit"), std::string::npos) << findings[0].sentence;
  EXPECT_EQ(findings[1].sentence, "Crosstalk may miss locked updates: the cause. To see it: the remedy.");
}

TEST(BlindFindings, WithFullSightAreNone) {
  for (const Finding& finding : findings_of(analysis_with(session_of(TrialVerdict::fires)))) {
    EXPECT_NE(finding.kind, "blind");
  }
}

/// Both recordings have seen nothing, with the limits of an estimator that may give them.
comparison::Comparison compared(const Analysis& before, const Analysis& after) {
  return comparison::compare(before, after, {});
}

Analysis with_limit(Analysis analysis) {
  if (analysis.sight.sees == Sees::everything) {
    analysis.communication.unseen = Unseen{{0.001, 0.001}, {}};
    analysis.communication.undetected.at_most_s = 0.002;
  }
  return analysis;
}

comparison::Judgement judged(const char* condition, TrialVerdict before, TrialVerdict after, std::uint32_t silent = 0) {
  const Analysis was = with_limit(analysis_with(session_of(before, silent)));
  const Analysis is = with_limit(analysis_with(session_of(after, silent)));
  return comparison::judge(*comparison::parse_condition(condition), compared(was, is));
}

TEST(BlindGate, IsUndecidedWhereTheProfileCouldSeeNothing) {
  for (const char* const gate :
       {"cost_s > 2 %", "change(cost_s) > 1 %", "cost_s of any object > 2 %", "cost_s < 50 %"}) {
    const comparison::Judgement judgement = judged(gate, TrialVerdict::fires, TrialVerdict::never);
    EXPECT_FALSE(judgement.judged) << gate;
    EXPECT_FALSE(judgement.holds) << gate;
    EXPECT_NE(judgement.blind.find("the recording after could not watch memory: the cause"), std::string::npos) << gate;
  }
}

TEST(BlindGate, IsJudgedWhereBothCouldSee) {
  const comparison::Judgement judgement = judged("cost_s > 2 %", TrialVerdict::fires, TrialVerdict::fires);
  EXPECT_TRUE(judgement.judged);
  EXPECT_FALSE(judgement.holds);
  EXPECT_EQ(judgement.blind, "");
}

TEST(BlindGate, OfTheProfileAfterDoesNotDependOnTheOneBefore) {
  EXPECT_TRUE(judged("cost_s > 2 %", TrialVerdict::never, TrialVerdict::fires).judged);
  EXPECT_FALSE(judged("change(cost_s) > 2 %", TrialVerdict::never, TrialVerdict::fires).judged);
}

TEST(BlindGate, OfCpuTimeIsJudgedAnyway) {
  EXPECT_TRUE(judged("cpu_s > 1", TrialVerdict::never, TrialVerdict::never).holds);
}

TEST(BlindGate, OfPartSightHoldsForWhatWasSeenAndIsUndecidedElse) {
  Analysis a = analysis_with(session_of(TrialVerdict::partly, profile::trial_locked));
  Amount& seen = a.communication.true_sharing;
  seen.seen = 50;
  seen.cost_s = 0.5;
  seen.cost_ci95 = Interval{0.4, 0.6};
  const comparison::Comparison c = compared(a, a);
  EXPECT_TRUE(comparison::judge(*comparison::parse_condition("cost_s > 10 %"), c).holds);
  for (const char* const gate : {"cost_s > 80 %", "cost_s < 80 %"}) {
    const comparison::Judgement judgement = comparison::judge(*comparison::parse_condition(gate), c);
    EXPECT_FALSE(judgement.judged || judgement.holds) << gate;
    EXPECT_NE(judgement.blind.find("may have missed locked updates"), std::string::npos);
  }
}

TEST(BlindGate, WarnsOfTheRecordingThatCouldNotSee) {
  const Analysis sees = analysis_with(session_of(TrialVerdict::fires));
  const Analysis blind = analysis_with(session_of(TrialVerdict::never));
  const auto codes = [](const comparison::Comparison& c) {
    return std::count_if(c.warnings.begin(), c.warnings.end(),
                         [](const Warning& warning) { return warning.code == "watchpoints_blind"; });
  };
  EXPECT_EQ(codes(compared(sees, sees)), 0);
  EXPECT_EQ(codes(compared(sees, blind)), 1);
  EXPECT_EQ(codes(compared(blind, blind)), 2);
}

}  // namespace
}  // namespace crosstalk::attribution::test
