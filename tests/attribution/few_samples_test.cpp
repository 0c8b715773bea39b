// SPDX-License-Identifier: Apache-2.0
#include "attribution/few_samples.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace crosstalk::attribution::few_samples_test {
namespace {

FewSamplesFacts facts(std::optional<double> cpu_s) {
  FewSamplesFacts made;
  made.elapsed_s = 2;
  made.cpu_s = cpu_s;
  made.period_ns = 4'000'000;
  return made;
}

TEST(FewSamples, OfAProgramThatConfinedItself) {
  const std::vector<profile::MessageRow> messages = {
      {"other", "nothing of it", 1},
      {"seccomp", "the program confines itself with seccomp: it is not observed from then on", 1}};
  FewSamplesFacts confined = facts(std::nullopt);
  confined.left_alone = left_alone_because(messages, false);
  EXPECT_EQ(why_few_samples(confined),
            "the program confines itself with seccomp: it is not observed from then on; to see it, record it from "
            "outside: crosstalk record --observer");
  std::vector<profile::ProcessRow> processes(1);
  processes[0].observation = profile::Observation::injected;
  confined.processes = processes;
  EXPECT_NE(why_few_samples(confined).find("record -p PID, without --inject"), std::string::npos);
}

TEST(FewSamples, OfAProgramThatWasNeverObserved) {
  const std::vector<profile::MessageRow> messages = {
      {"program_not_observed", "go was not observed: it is statically linked; link it dynamically to observe it", 1}};
  EXPECT_EQ(left_alone_because(messages, false), "") << "one of many";
  FewSamplesFacts unobserved = facts(std::nullopt);
  unobserved.left_alone = left_alone_because(messages, true);
  EXPECT_EQ(why_few_samples(unobserved), messages[0].text) << "it has a remedy";
}

TEST(FewSamples, OfAProgramWhoseLimitsLeaveNoRoom) {
  const std::vector<profile::MessageRow> messages = {
      {"processes_without_memory", "1 process went unobserved: its limits are too low; raise them", 1}};
  FewSamplesFacts unobserved = facts(0.003);
  unobserved.left_alone = left_alone_because(messages, true);
  EXPECT_EQ(why_few_samples(unobserved), messages[0].text);
}

TEST(FewSamples, OfWhatWasTooShort) {
  EXPECT_EQ(why_few_samples(facts(0.003)),
            "it used 3 ms of CPU time, and crosstalk samples every 4 ms of it. Give the program more work, or sample "
            "more often: "
            "--period 100us");
}

TEST(FewSamples, OfManyThreadsThatEachDidLittle) {
  FewSamplesFacts many = facts(0.1);
  many.threads = 3;
  EXPECT_NE(
      why_few_samples(many).find("it used 100 ms of CPU time in 3 threads, and crosstalk samples every 4 ms of it."),
      std::string::npos)
      << why_few_samples(many);
}

TEST(FewSamples, OfAnIdleProcess) {
  FewSamplesFacts idle = facts(0.001);
  idle.launched = false;
  EXPECT_EQ(why_few_samples(idle),
            "it used 1 ms of CPU time in 2 s; record while it works, or for longer, or with a shorter --period");
}

TEST(FewSamples, RemediesAreAddedOnce) {
  Warning warning{"traced", "a debugger or tracer has come: the program is not observed from then on"};
  add_remedy(warning, {});
  EXPECT_NE(warning.message.find("; to see it, record it from outside"), std::string::npos) << warning.message;
  Warning other{"lost_samples", "one record was lost"};
  add_remedy(other, {});
  EXPECT_EQ(other.message, "one record was lost");
}

}  // namespace
}  // namespace crosstalk::attribution::few_samples_test
