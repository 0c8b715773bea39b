// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/source_choice.h"

#include <gtest/gtest.h>

#include <vector>

namespace crosstalk::collectors::source_choice_test {
namespace {

using profile::SourceKind;

MemoryEvent event(const std::string& name, unsigned precise = 3) {
  MemoryEvent made;
  made.name = name;
  made.attr.precise_ip = precise & 3U;
  return made;
}

Result<MemoryEvent> takes_all(MemoryEvent event) { return event; }

TEST(SourceChoice, TheFirstWhoseEventsAllOpen) {
  const std::vector<SourceStep> steps = {{SourceKind::ibs, {}, "no ibs_op"},
                                         {SourceKind::pebs, {event("loads"), event("stores")}, ""},
                                         {SourceKind::clock, {}, ""}};
  const ChosenSource best = choose_source(steps, takes_all);
  EXPECT_EQ(best.source, SourceKind::pebs);
  EXPECT_EQ(best.events.size(), 2U);
  EXPECT_EQ(in_words(best.verdicts), "ibs: no ibs_op; pebs: chosen");
  EXPECT_FALSE(best.verdicts[0].remediable);

  const ChosenSource refused = choose_source(steps, [](MemoryEvent tried) -> Result<MemoryEvent> {
    if (tried.name == "stores") {
      return fail(ErrorCode::permission, "not for you");
    }
    return tried;
  });
  EXPECT_EQ(refused.source, SourceKind::clock);
  EXPECT_TRUE(refused.events.empty()) << "half of them would be a part that nobody knows";
  EXPECT_EQ(in_words(refused.verdicts), "ibs: no ibs_op; pebs: not for you; clock: chosen in place of pebs");
  EXPECT_TRUE(refused.verdicts[1].remediable);
}

TEST(SourceChoice, EventsAreAsTheyWereOpened) {
  const std::vector<SourceStep> steps = {{SourceKind::pebs, {event("loads", 3)}, ""}};
  const ChosenSource chosen = choose_source(steps, [](MemoryEvent tried) -> Result<MemoryEvent> {
    tried.attr.precise_ip = 2;
    return tried;
  });
  EXPECT_EQ(chosen.events.front().attr.precise_ip, 2U);
}

TEST(SourceChoice, ALineTellsTheSourceAndWhyNotABetterOne) {
  const SourceVerdict none{SourceKind::ibs, "no ibs_op: virtual machines have none"};
  const SourceVerdict no_module{SourceKind::ibs_kmod, "its module is not loaded"};
  const SourceVerdict clock{SourceKind::clock, ""};
  EXPECT_EQ(in_a_line({SourceKind::clock, {}, {none, no_module, clock}}),
            "samples by a clock: this machine has no precise memory events (no ibs_op: virtual machines have none)");
  EXPECT_EQ(in_a_line({SourceKind::pebs, {}, {{SourceKind::pebs, ""}}}), "samples by pebs, with a clock beside");
  EXPECT_EQ(in_a_line({SourceKind::ibs_kmod, {}, {none, {SourceKind::ibs_kmod, ""}}}),
            "samples by ibs-kmod, with a clock beside, not by ibs: no ibs_op: virtual machines have none");
  const SourceVerdict for_processors{SourceKind::ibs, "for processors only", false, true};
  EXPECT_EQ(in_a_line({SourceKind::clock, {}, {for_processors, no_module, clock}}),
            "samples by a clock, not by ibs: for processors only");
  const SourceVerdict forbidden{SourceKind::ibs, "forbidden", true, true};
  EXPECT_EQ(in_a_line({SourceKind::clock, {}, {forbidden, no_module, clock}}), "samples by a clock in place of ibs")
      << "a warning has told why";
}

TEST(SourceChoice, OneThatIsInsistedOnIsHadOrRefused) {
  const auto chosen = insist_on({SourceKind::pebs, {event("loads")}, ""}, takes_all);
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->source, SourceKind::pebs);
  const auto missing = insist_on({SourceKind::ibs_kmod, {}, "/dev/crosstalk_ibs is not there"}, takes_all);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "/dev/crosstalk_ibs is not there");
  const auto refused = insist_on({SourceKind::pebs, {event("loads")}, ""}, [](const MemoryEvent&) {
    return Result<MemoryEvent>(fail(ErrorCode::permission, "no"));
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::permission);
}

}  // namespace
}  // namespace crosstalk::collectors::source_choice_test
