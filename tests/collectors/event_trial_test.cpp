// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_trial.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace crosstalk::collectors {
namespace {

MemoryEvent of_a_thread() {
  MemoryEvent event;
  event.unit = "cpu";
  event.name = "mem-loads";
  return event;
}

TEST(EventTrial, ARefusalSaysCauseValueAndRemedy) {
  MemoryEvent event = of_a_thread();
  const auto message = [&](int error, const KernelSettings& settings = {3, false}) {
    return refusal_of(event, error, settings).message;
  };
  EXPECT_EQ(message(EACCES),
            "the kernel refuses cpu/mem-loads/: Permission denied, kernel.perf_event_paranoid is 3; to allow it: sudo "
            "sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON");
  EXPECT_EQ(refusal_of(event, EACCES, {}).code, ErrorCode::permission);
  EXPECT_NE(message(EBUSY).find("in use"), std::string::npos);
  EXPECT_EQ(message(EINVAL).find("nmi_watchdog"), std::string::npos);
  EXPECT_NE(message(EINVAL, {2, true}).find("sudo sysctl kernel.nmi_watchdog=0"), std::string::npos);
  EXPECT_NE(message(EMFILE).find("ulimit -n"), std::string::npos);
  EXPECT_EQ(message(ENODEV), "the kernel refuses cpu/mem-loads/: No such device");
  event.kernel_excluded = false;
  EXPECT_NE(message(EACCES).find("paranoid=1"), std::string::npos);
  event.each_cpu = true;
  EXPECT_NE(message(EACCES).find("processors only"), std::string::npos);
  EXPECT_NE(message(EACCES).find("paranoid=0"), std::string::npos);
}

TEST(EventTrial, AUnitThatTheKernelDoesNotHaveIsRefused) {
  MemoryEvent event = of_a_thread();
  event.attr.size = sizeof event.attr;
  event.attr.type = 0x7ffffff0;
  const auto tried = try_event(event);
  ASSERT_FALSE(tried);
  EXPECT_NE(tried.error().message.find("the kernel refuses cpu/mem-loads/"), std::string::npos);
}

}  // namespace
}  // namespace crosstalk::collectors
