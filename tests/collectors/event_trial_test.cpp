// SPDX-License-Identifier: Apache-2.0
#include "collectors/pmu/event_trial.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

namespace crosstalk::collectors::event_trial_test {
namespace {

MemoryEvent of_a_thread() {
  MemoryEvent event;
  event.unit = "cpu";
  event.name = "mem-loads";
  return event;
}

std::string message(const MemoryEvent& event, int error, const KernelSettings& settings = {3, false, false}) {
  return refusal_of(event, error, settings).message;
}

TEST(EventTrial, ARefusalSaysCauseValueAndRemedy) {
  MemoryEvent event = of_a_thread();
  EXPECT_EQ(message(event, EACCES),
            "the kernel refuses cpu/mem-loads/: Permission denied, kernel.perf_event_paranoid is 3; to allow it: sudo "
            "sysctl kernel.perf_event_paranoid=2, or CAP_SYS_ADMIN")
      << "CAP_PERFMON does not help above 2";
  EXPECT_EQ(refusal_of(event, EACCES, {}).code, ErrorCode::permission);
  event.kernel_excluded = false;
  EXPECT_NE(message(event, EACCES, {2, false, false}).find("paranoid=1, or CAP_PERFMON"), std::string::npos);
  event.each_cpu = true;
  EXPECT_NE(message(event, EACCES).find("processors only"), std::string::npos);
  EXPECT_NE(message(event, EACCES).find("paranoid=0"), std::string::npos);
}

TEST(EventTrial, WhatAFilterOfSystemCallsRefusesIsNotBlamedOnTheSysctl) {
  const MemoryEvent event = of_a_thread();
  const std::string filtered = message(event, EPERM, {2, false, true});
  EXPECT_NE(filtered.find("by a seccomp filter; start the container with"), std::string::npos) << filtered;
  EXPECT_EQ(filtered.find("paranoid"), std::string::npos) << filtered;
  EXPECT_NE(message(event, ENOSYS, {2, false, true}).find("seccomp"), std::string::npos);
  EXPECT_NE(message(event, ENOSYS).find("without perf events"), std::string::npos);
  EXPECT_NE(message(event, EACCES, {3, false, true}).find("paranoid=2"), std::string::npos) << "filters say EPERM";
  const std::string module = message(event, EACCES, {1, false, false});
  EXPECT_NE(module.find("paranoid is 1, which allows it: a security module"), std::string::npos) << module;
}

TEST(EventTrial, EachErrorHasItsRemedy) {
  MemoryEvent event = of_a_thread();
  event.attr.precise_ip = 3;
  const KernelSettings quiet{2, false, false};
  const KernelSettings watched{2, true, false};
  const auto has = [&](int error, const KernelSettings& settings, const char* part) {
    EXPECT_NE(message(event, error, settings).find(part), std::string::npos) << message(event, error, settings);
  };
  has(EBUSY, quiet, "in use; end what else measures");
  has(ENOSPC, quiet, "no counter is left for it; end what else measures");
  has(ENOSPC, watched, "sudo sysctl kernel.nmi_watchdog=0");
  has(EINVAL, watched, "sudo sysctl kernel.nmi_watchdog=0");
  has(EINVAL, quiet, "precise_ip 3 and period 0; to see its terms: ls /sys/bus/event_source/devices/cpu/format");
  has(ENODEV, quiet, "pmu=on");
  has(ENOENT, quiet, "pmu=on");
  has(ENODATA, quiet, "mem-loads-aux");
  has(EOPNOTSUPP, quiet, "precise_ip 3; name it with fewer p");
  has(EMFILE, quiet, "ulimit -n");
  has(EIO, quiet, "dmesg");
  event.source = profile::SourceKind::ibs;
  EXPECT_EQ(message(event, EINVAL, watched).find("watchdog"), std::string::npos) << "it has none of IBS's counters";
  event.unit = "";
  has(EINVAL, quiet, "another event may do");
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
}  // namespace crosstalk::collectors::event_trial_test
