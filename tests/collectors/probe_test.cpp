// SPDX-License-Identifier: Apache-2.0
#include "collectors/facilities/probe.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "collectors/facilities/probe_perf.h"
#include "collectors/facilities/probe_pmu.h"
#include "collectors/probe_system.h"

namespace crosstalk::collectors::probe_test {
namespace {

const Facility* find(const std::vector<Facility>& facilities, const std::string& name) {
  const auto found =
      std::find_if(facilities.begin(), facilities.end(), [&](const Facility& f) { return f.name == name; });
  return found == facilities.end() ? nullptr : &*found;
}

TEST(KernelRelease, IsParsed) {
  EXPECT_EQ(parse_kernel_release("6.1.0-13-amd64"), (KernelVersion{6, 1}));
  EXPECT_EQ(parse_kernel_release("5.13"), oldest_kernel);
  EXPECT_EQ(parse_kernel_release("10.0-rc1"), (KernelVersion{10, 0}));
  EXPECT_LT(*parse_kernel_release("5.9.16"), oldest_kernel);
  for (const char* const bad : {"", "6", "6.", "x.1", ".1", "99999999999.1"}) {
    EXPECT_FALSE(parse_kernel_release(bad)) << bad;
  }
}

TEST(CpuFacts, TellVirtualMachines) {
  const CpuFacts guest = parse_cpuinfo("vendor_id\t: AuthenticAMD\nmodel name\t: X\nflags\t\t: fpu hypervisor\n\n");
  EXPECT_EQ(guest.vendor, "AuthenticAMD");
  EXPECT_EQ(guest.model, "X");
  EXPECT_TRUE(guest.virtual_machine);
  EXPECT_FALSE(parse_cpuinfo("flags\t: fpu hypervisory\n").virtual_machine);
  EXPECT_FALSE(guest.has_ibs);
  EXPECT_TRUE(parse_cpuinfo("flags\t: fpu ibs\n").has_ibs);
}

PmuUnit unit(const std::string& name, EventFormat format) {
  PmuUnit made;
  made.name = name;
  made.format = std::move(format);
  return made;
}

Result<MemoryEvent> takes_all(MemoryEvent event) { return event; }

TEST(PmuFacilities, SayWhatTheKernelRefuses) {
  MachineDescription amd;
  amd.vendor = "AuthenticAMD";
  amd.units = {unit("ibs_op", {{"cnt_ctl", "config:19"}})};
  const auto refused = pmu_facilities(amd, {}, [](const MemoryEvent&) -> Result<MemoryEvent> {
    return fail(ErrorCode::permission, "the kernel refuses ibs_op");
  });
  EXPECT_FALSE(find(refused, "IBS")->available);
  EXPECT_EQ(find(refused, "IBS")->found, "the kernel refuses ibs_op");
}

TEST(PmuFacilities, FollowFromTheUnits) {
  MachineDescription amd;
  amd.vendor = "AuthenticAMD";
  amd.units = {unit("cpu", {}), unit("ibs_op", {{"cnt_ctl", "config:19"}})};
  const auto facilities = pmu_facilities(amd, {"zen3"}, takes_all);
  EXPECT_EQ(find(facilities, "CPU PMU")->found, "cpu (libpfm4: zen3)");
  EXPECT_TRUE(find(facilities, "IBS")->available);
  EXPECT_EQ(find(facilities, "IBS")->found, "ibs_op//");
  EXPECT_FALSE(find(facilities, "PEBS")->available);
  EXPECT_EQ(find(facilities, "PEBS")->found, "not an Intel processor");
  MachineDescription guest;
  guest.vendor = "GenuineIntel";
  guest.virtual_machine = true;
  const auto none = pmu_facilities(guest, {}, takes_all);
  EXPECT_FALSE(find(none, "CPU PMU")->available);
  EXPECT_NE(find(none, "CPU PMU")->remedy.find("pmu=on"), std::string::npos);
  EXPECT_FALSE(find(none, "PEBS")->available);
}

TEST(PmuFacilities, OurModuleIsAdvisedWherePerfHasNoIbs) {
  MachineDescription amd;
  amd.vendor = "AuthenticAMD";
  const auto without = pmu_facilities(amd, {}, takes_all);
  EXPECT_FALSE(find(without, "IBS module")->available);
  EXPECT_TRUE(find(without, "IBS module")->remedy.empty()) << "the processor has no IBS";
  amd.has_ibs = true;
  const auto advised = pmu_facilities(amd, {}, takes_all);
  EXPECT_FALSE(find(advised, "IBS module")->available);
  EXPECT_NE(find(advised, "IBS module")->found.find("better source"), std::string::npos);
  EXPECT_NE(find(advised, "IBS module")->remedy.find("dkms install crosstalk-ibs/1"), std::string::npos);
  amd.ibs_module = IbsModule{false, true, 1000, 1'000'000};
  EXPECT_EQ(find(pmu_facilities(amd, {}, takes_all), "IBS module")->found, "crosstalk_ibs/ibs_op/");
  amd.ibs_module = IbsModule{true, false, 1000, 1'000'000};
  EXPECT_FALSE(find(pmu_facilities(amd, {}, takes_all), "IBS module")->available) << "made-up samples";
  amd.ibs_module = fail(ErrorCode::permission, "may not be opened");
  EXPECT_EQ(find(pmu_facilities(amd, {}, takes_all), "IBS module")->found, "may not be opened");
  amd.ibs_module = fail(ErrorCode::not_found, "is not there");
  amd.units = {unit("ibs_op", {{"cnt_ctl", "config:19"}})};
  EXPECT_TRUE(find(pmu_facilities(amd, {}, takes_all), "IBS module")->remedy.empty()) << "perf has it";
}

TEST(Attributes, AskForSynchronousTrapsInUserMode) {
  const perf_event_attr watch = watchpoint_attributes(0x1000, 8);
  EXPECT_EQ(watch.type, static_cast<unsigned>(PERF_TYPE_BREAKPOINT));
  EXPECT_EQ(watch.bp_addr, 0x1000U);
  EXPECT_EQ(watch.bp_len, 8U);
  EXPECT_EQ(watch.sample_period, 1U);
  for (const perf_event_attr& event : {watch, task_clock_attributes(1'000'000)}) {
    EXPECT_TRUE(event.sigtrap && event.remove_on_exec && event.exclude_kernel && event.disabled);
  }
}

TEST(Probe, AgreesWithItself) {
  const Probe found = probe();
  for (const char* const name : {"kernel", "watchpoints", "line probes", "perf task-clock", "POSIX timer"}) {
    ASSERT_NE(find(found.facilities, name), nullptr) << name;
    EXPECT_FALSE(find(found.facilities, name)->found.empty()) << name;
  }
  const std::vector<Facility> units = units_here();
  for (const char* const name : {"CPU PMU", "PEBS", "IBS"}) {
    ASSERT_NE(find(units, name), nullptr) << name;
    EXPECT_FALSE(find(units, name)->found.empty()) << name;
  }
  EXPECT_EQ(find(found.facilities, "watchpoints")->available, found.watchpoints_allowed);
  EXPECT_EQ(find(found.facilities, "perf task-clock")->available, found.perf_allowed);
  EXPECT_EQ(found.watchpoints_allowed, found.debug_registers > 0);
  EXPECT_LE(found.debug_registers, 4U);
  for (const Facility& facility : found.facilities) {
    EXPECT_TRUE(facility.remedy.empty() || !facility.available) << facility.name;
  }
}

TEST(Probe, GivesTheDebugRegistersBack) {
  const Probe first = probe();
  EXPECT_EQ(probe().debug_registers, first.debug_registers);
}

TEST(Probe, CountsRegistersThatOthersHold) {
  alignas(8) static std::uint64_t variable = 0;
  const Probe before = probe();
  if (before.debug_registers == 0) {
    GTEST_SKIP() << "no watchpoints here: " << find(before.facilities, "watchpoints")->found;
  }
  const OpenedEvent held = open_event(watchpoint_attributes(reinterpret_cast<std::uint64_t>(&variable), 8));
  ASSERT_TRUE(held.fd.valid());
  EXPECT_EQ(probe().debug_registers, before.debug_registers - 1);
}

// On some virtual machines they can be set, and nothing is ever reported.
TEST(Probe, WatchpointsThatDoNotFireAreNone) {
  int error = 0;
  const bool can_be_set = count_debug_registers(error) > 0;
  const Probe found = probe();
  EXPECT_EQ(found.watch_trial.verdict == profile::TrialVerdict::not_opened, !can_be_set || !found.perf_allowed);
  EXPECT_EQ(found.watchpoints_allowed, profile::is_worth_arming(found.watch_trial));
  EXPECT_LE(found.watchpoints_inside, found.watchpoints_allowed);
  EXPECT_EQ(found.debug_registers > 0, found.watchpoints_allowed);
  const Facility* const facility = find(found.facilities, "watchpoints");
  ASSERT_NE(facility, nullptr);
  EXPECT_EQ(facility->available, found.watchpoints_allowed);
  EXPECT_NE(facility->found, "");
}

TEST(Probe, SaysOfWatchpointsWhatTheirTestFound) {
  profile::WatchTrial trial;
  trial.registers = 4;
  trial.verdict = profile::TrialVerdict::fires;
  EXPECT_TRUE(watchpoint_facility(trial).available);
  EXPECT_EQ(watchpoint_facility(trial).found, "4 of 4 debug registers free, and they fire");
  trial.verdict = profile::TrialVerdict::partly;
  trial.silent = profile::trial_locked;
  trial.why = "watchpoints do not report all locked updates";
  trial.remedy = "record elsewhere";
  EXPECT_TRUE(watchpoint_facility(trial).available);
  EXPECT_EQ(watchpoint_facility(trial).found,
            "4 of 4 debug registers free, but watchpoints do not report all locked updates");
  for (const auto verdict :
       {profile::TrialVerdict::never, profile::TrialVerdict::not_opened, profile::TrialVerdict::untestable}) {
    trial.verdict = verdict;
    EXPECT_FALSE(watchpoint_facility(trial).available);
    EXPECT_EQ(watchpoint_facility(trial).found, trial.why);
    EXPECT_EQ(watchpoint_facility(trial).remedy, trial.remedy);
  }
}

}  // namespace
}  // namespace crosstalk::collectors::probe_test
