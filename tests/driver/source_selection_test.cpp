// SPDX-License-Identifier: Apache-2.0
#include "driver/recording/source_selection.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "driver/recording/memory_sampling.h"

namespace crosstalk::driver::source_selection_test {
namespace {

using collectors::MemoryEvent;
using profile::SourceKind;

collectors::MachineDescription intel() {
  collectors::PmuUnit unit;
  unit.name = "cpu";
  unit.type = 4;
  unit.format = {{"event", "config:0-7"}, {"umask", "config:8-15"}, {"ldlat", "config1:0-15"}};
  unit.events = {{"mem-loads", "event=0xcd,umask=0x1,ldlat=3"}, {"mem-stores", "event=0xd0,umask=0x82"}};
  unit.caps = {{"max_precise", "3"}};
  collectors::MachineDescription machine;
  machine.vendor = "GenuineIntel";
  machine.kernel = collectors::KernelVersion{6, 1};
  machine.units = {unit};
  return machine;
}

collectors::EventLibrary no_library() {
  return {[](const std::string&) -> Result<perf_event_attr> { return fail(ErrorCode::invalid_argument, "not found"); },
          [] { return std::vector<std::string>{"MEM_LOADS"}; }};
}

Result<MemoryEvent> takes_all(MemoryEvent event) { return event; }
Result<MemoryEvent> takes_none(const MemoryEvent& /*event*/) { return fail(ErrorCode::permission, "forbidden"); }

std::string refusal(const RecordRequest& request, const collectors::MachineDescription& machine,
                    const collectors::EventTrial& trial = takes_all) {
  const auto selected = select_source(request, machine, no_library(), trial);
  EXPECT_FALSE(selected);
  return selected ? "" : selected.error().message;
}

TEST(SourceSelection, TheBestByItself) {
  const auto selected = select_source({}, intel(), no_library(), takes_all);
  ASSERT_TRUE(selected);
  EXPECT_EQ(selected->chosen.source, SourceKind::pebs);
  EXPECT_EQ(selected->chosen.events.size(), 2U);
  EXPECT_EQ(selected->asked_by, "");
  const auto clock = select_source({}, {}, no_library(), takes_all);
  ASSERT_TRUE(clock);
  EXPECT_EQ(clock->chosen.source, SourceKind::clock);
  EXPECT_EQ(collectors::in_words(clock->chosen.verdicts), "pebs: not an Intel processor; clock: chosen");
  const auto refused = select_source({}, intel(), no_library(), takes_none);
  ASSERT_TRUE(refused) << "the clock samples";
  EXPECT_EQ(collectors::in_words(refused->chosen.verdicts), "pebs: forbidden; clock: chosen in place of pebs");
}

TEST(SourceSelection, WhatCanSampleItselfDoes) {
  const auto selected = select_source({}, intel(), no_library(), takes_all);
  ASSERT_TRUE(selected);
  EXPECT_EQ(obstacle_inside(*selected), "");
  const SourceSelection by_events = inside(*selected);
  EXPECT_EQ(by_events.chosen.source, SourceKind::pebs);
  EXPECT_EQ(by_events.chosen.events.size(), 2U);
  const SourceSelection refused = inside(*select_source({}, intel(), no_library(), takes_none));
  EXPECT_EQ(refused.chosen.source, SourceKind::clock);
  EXPECT_EQ(collectors::in_words(refused.chosen.verdicts), "pebs: forbidden; clock: chosen in place of pebs");
  EXPECT_TRUE(refused.chosen.verdicts[0].remediable) << "the machine has it";
}

TEST(SourceSelection, WhatCanNotLeavesItToTheClock) {
  const auto takes_for_processors = [](MemoryEvent event) -> Result<MemoryEvent> {
    event.each_cpu = true;
    return event;
  };
  const auto selected = select_source({}, intel(), no_library(), takes_for_processors);
  ASSERT_TRUE(selected);
  const SourceSelection clock = inside(*selected);
  EXPECT_EQ(clock.chosen.source, SourceKind::clock);
  EXPECT_TRUE(clock.chosen.events.empty());
  EXPECT_EQ(collectors::in_words(clock.chosen.verdicts),
            "pebs: the kernel takes cpu/mem-loads/ for processors only, which is for what is watched from outside "
            "(Linux 6.2 takes it for threads); clock: chosen in place of pebs");
  RecordRequest request;
  request.memory_events = {"cpu/mem-stores/"};
  const auto named = select_source(request, intel(), no_library(), takes_all);
  ASSERT_TRUE(named);
  EXPECT_EQ(obstacle_inside(*named), "is for what is watched from outside");
  EXPECT_EQ(inside(*named).chosen.source, SourceKind::clock);
}

TEST(SourceSelection, OneThatIsAskedForOrNone) {
  RecordRequest request;
  request.source = SourceChoice::pebs;
  const auto selected = select_source(request, intel(), no_library(), takes_all);
  ASSERT_TRUE(selected);
  EXPECT_EQ(selected->chosen.source, SourceKind::pebs);
  EXPECT_EQ(selected->asked_by, "--source pebs");
  EXPECT_EQ(refusal(request, intel(), takes_none),
            "--source pebs: not available on this machine: forbidden; use --source clock");
  request.source = SourceChoice::ibs;
  EXPECT_EQ(refusal(request, intel()),
            "--source ibs: not available on this machine: not an AMD processor; use --source clock");
  request.source = SourceChoice::ibs_kmod;
  EXPECT_NE(refusal(request, intel()).find("/dev/crosstalk_ibs is not there"), std::string::npos);
  request.source = SourceChoice::clock;
  const auto clock = select_source(request, intel(), no_library(), takes_none);
  ASSERT_TRUE(clock);
  EXPECT_TRUE(clock->chosen.events.empty());
}

TEST(SourceSelection, ALineTellsItUnlessItWasNamed) {
  EXPECT_EQ(in_a_line(*select_source({}, intel(), no_library(), takes_all)), "samples by pebs, with a clock beside");
  EXPECT_EQ(in_a_line(*select_source({}, {}, no_library(), takes_all)),
            "samples by a clock: this machine has no precise memory events (not an Intel processor)");
  EXPECT_EQ(in_a_line(*select_source({}, intel(), no_library(), takes_none)), "samples by a clock in place of pebs");
  RecordRequest request;
  request.source = SourceChoice::pebs;
  EXPECT_EQ(in_a_line(*select_source(request, intel(), no_library(), takes_all)), "");
  request.source = SourceChoice::clock;
  EXPECT_EQ(in_a_line(*select_source(request, intel(), no_library(), takes_all)), "");
}

TEST(SourceSelection, AClockThatIsCoarserThanThePeriodIsSaid) {
  constexpr std::uint64_t tick_ns = 4'000'000;
  profile::SessionConfig config;
  config.period_ns = 4'000'000;
  EXPECT_EQ(coarse_clock_in_a_line(config, tick_ns), "");
  config.period_ns = 1'000'000;
  EXPECT_EQ(coarse_clock_in_a_line(config, tick_ns),
            "samples come each 4 ms of CPU time, not each 1 ms, by POSIX timers: the kernel looks at them once a tick");
  EXPECT_EQ(coarse_clock_in_a_line(config, 0), "") << "the tick is not known";
  config.perf_allowed = 1;
  EXPECT_NE(coarse_clock_in_a_line(config, tick_ns).find("in threads whose clocks are POSIX timers"),
            std::string::npos);
  config.clock = profile::ClockKind::posix;
  EXPECT_NE(coarse_clock_in_a_line(config, tick_ns).find("--event task-clock has none"), std::string::npos);
  config.clock = profile::ClockKind::perf;
  EXPECT_EQ(coarse_clock_in_a_line(config, tick_ns), "");
}

TEST(SourceSelection, OurModuleWherePerfHasNoIbs) {
  collectors::MachineDescription amd;
  amd.vendor = "AuthenticAMD";
  amd.ibs_module = collectors::IbsModule{false, true, 256, 1'000'000};
  const auto selected = select_source({}, amd, no_library(), takes_all);
  ASSERT_TRUE(selected);
  EXPECT_EQ(selected->chosen.source, SourceKind::ibs_kmod);
  EXPECT_EQ(collectors::in_words(selected->chosen.verdicts),
            "ibs: no ibs_op in /sys/bus/event_source/devices; ibs-kmod: chosen");
  EXPECT_EQ(obstacle_inside(*selected), "");
  EXPECT_EQ(inside(*selected).chosen.source, SourceKind::ibs_kmod) << "threads sample themselves";
  amd.ibs_module->emulated = true;
  EXPECT_EQ(select_source({}, amd, no_library(), takes_all)->chosen.source, SourceKind::clock);
  RecordRequest request;
  request.source = SourceChoice::ibs_kmod;
  const auto named = select_source(request, amd, no_library(), takes_all);
  ASSERT_TRUE(named) << "who names it wants it, emulated or not";
  EXPECT_EQ(named->chosen.source, SourceKind::ibs_kmod);
  EXPECT_EQ(named->asked_by, "--source ibs-kmod");
  EXPECT_EQ(refusal(request, amd, takes_none),
            "--source ibs-kmod: not available on this machine: forbidden; use --source clock");
}

TEST(SourceSelection, WhyThreadsWereSampledByTheirClocksAlone) {
  const auto said = [](profile::MemoryRefusal refusal, int error) {
    profile::MemoryCounts counts{};
    counts.clock_alone = 2;
    counts.refusal = static_cast<std::uint32_t>(refusal);
    counts.refusal_error = error;
    const auto remarks = remarks_on_memory(counts, false);
    return remarks.size() == 1 ? remarks.front().text : "";
  };
  EXPECT_EQ(said(profile::MemoryRefusal::kernel, EACCES),
            "2 threads were sampled by the clock alone: the kernel refused the events: Permission denied");
  EXPECT_NE(said(profile::MemoryRefusal::kernel, EDQUOT).find("user_memory_kb of the IBS module"), std::string::npos);
}

TEST(SourceSelection, EventsThatAreNamed) {
  RecordRequest request;
  request.memory_events = {"cpu/mem-stores/"};
  const auto selected = select_source(request, intel(), no_library(), takes_all);
  ASSERT_TRUE(selected);
  EXPECT_EQ(selected->chosen.source, SourceKind::pebs);
  EXPECT_EQ(selected->asked_by, "--event");
  EXPECT_EQ(refusal(request, intel(), takes_none), "--event: forbidden; use --source clock");
  request.source = SourceChoice::ibs;
  EXPECT_NE(refusal(request, intel()).find("is no event of the source ibs here"), std::string::npos);
  request.source = SourceChoice::automatic;
  request.memory_events = {"taskclock"};
  EXPECT_EQ(refusal(request, intel()).find("--event: 'taskclock': not found; the nearest: task-clock"), 0U);
}

}  // namespace
}  // namespace crosstalk::driver::source_selection_test
