// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/doctor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace crosstalk::driver::doctor_test {
namespace {

collectors::Probe made_probe(bool perf) {
  collectors::Probe probe;
  probe.perf_allowed = perf;
  probe.watchpoints_allowed = probe.watchpoints_inside = perf;
  probe.paranoid = perf ? 2 : 3;
  probe.facilities = {{"kernel", true, "Linux 6.1.0", ""},
                      {"watchpoints", perf, "found", perf ? "" : "sudo sysctl kernel.perf_event_paranoid=2"},
                      {"POSIX timer", true, "thread CPU timers", ""}};
  return probe;
}

const collectors::Facility collector{"collector", true, "/lib/libcrosstalk.so", ""};

TEST(Doctor, SaysWhatCanBeSeen) {
  EXPECT_TRUE(diagnose(made_probe(true), collector).sees_communication);
  const Diagnosis forbidden = diagnose(made_probe(false), collector);
  EXPECT_TRUE(forbidden.can_record);
  EXPECT_TRUE(forbidden.sees_communication);
  EXPECT_EQ(forbidden.method.method, profile::Method::probe);
  EXPECT_FALSE(diagnose(made_probe(true), {"collector", false, "none", ""}).can_record);
}

TEST(Doctor, NamesTheSourcesTheBestFirst) {
  collectors::Probe probe = made_probe(true);
  EXPECT_EQ(sources_of(diagnose(probe, collector)), std::vector<std::string>{"clock"});
  probe.facilities.push_back({"PEBS", true, "cpu/mem-loads/, cpu/mem-stores/", ""});
  probe.facilities.push_back({"IBS", false, "not an AMD processor", ""});
  const Diagnosis diagnosis = diagnose(probe, collector);
  EXPECT_EQ(sources_of(diagnosis), (std::vector<std::string>{"pebs", "clock"}));
  const std::string text = render_diagnosis(diagnosis, {120, Charset::utf8, false});
  EXPECT_NE(text.find("Sources: pebs, clock."), std::string::npos) << text;
  EXPECT_EQ(nlohmann::json::parse(render_diagnosis_json(diagnosis))["sources"].size(), 2U);
  EXPECT_TRUE(sources_of(diagnose(probe, {"collector", false, "none", ""})).empty());
  probe.facilities = {made_probe(true).facilities};
  probe.facilities.push_back({"IBS", false, "no ibs_op", ""});
  probe.facilities.push_back({"IBS module", true, "crosstalk_ibs/ibs_op/", ""});
  EXPECT_EQ(sources_of(diagnose(probe, collector)), (std::vector<std::string>{"ibs-kmod", "clock"}));
}

TEST(Doctor, ShowsRemediesWhole) {
  const std::string text = render_diagnosis(diagnose(made_probe(false), collector), {40, Charset::utf8, false});
  EXPECT_NE(text.find("sudo sysctl kernel.perf_event_paranoid=2\n"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(Doctor, SaysOfWatchpointsWhatTheirTestFound) {
  collectors::Probe probe = made_probe(true);
  probe.watch_trial = {profile::TrialVerdict::never, profile::trial_all, 4,
                       "watchpoints can be set, but accesses to a watched word are not reported: this is a virtual "
                       "machine (KVM), whose host keeps debug exceptions to itself",
                       "record on the host itself"};
  collectors::take_verdict(probe);
  probe.facilities[1] = collectors::watchpoint_facility(probe.watch_trial);
  const Diagnosis diagnosis = diagnose(probe, collector);
  EXPECT_TRUE(diagnosis.can_record);
  EXPECT_TRUE(diagnosis.sees_communication);
  EXPECT_EQ(diagnosis.method.method, profile::Method::probe);
  const std::string text = render_diagnosis(diagnosis, {200, Charset::ascii, false});
  EXPECT_NE(text.find("no   watchpoints"), std::string::npos) << text;
  EXPECT_NE(text.find("this is a virtual machine (KVM)"), std::string::npos) << text;
  EXPECT_NE(text.find("> record on the host itself\n"), std::string::npos) << text;
  EXPECT_NE(text.find("by probes of lines, as watchpoints can be set, but"), std::string::npos) << text;

  const auto report = nlohmann::json::parse(render_diagnosis_json(diagnosis));
  EXPECT_EQ(report["method"], "probe");
  EXPECT_EQ(report["watchpoints"]["self_test"], "never");
  EXPECT_EQ(report["watchpoints"]["silent"].size(), 5U);
  EXPECT_EQ(report["watchpoints"]["remedy"], "record on the host itself");
}

TEST(Doctor, JsonHoldsTheSame) {
  const auto report = nlohmann::json::parse(render_diagnosis_json(diagnose(made_probe(false), collector)));
  EXPECT_EQ(report["schema"], "crosstalk.doctor/1");
  EXPECT_EQ(report["can_record"], true);
  EXPECT_EQ(report["facilities"][1]["remedy"], "sudo sysctl kernel.perf_event_paranoid=2");
  EXPECT_TRUE(report["facilities"][0]["remedy"].is_null());
}

}  // namespace
}  // namespace crosstalk::driver::doctor_test
