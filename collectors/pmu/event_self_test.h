// SPDX-License-Identifier: Apache-2.0
// The self-test of events. Some hypervisors, and broken firmware, let events be opened that never count, or that count
// and never sample. So the calling thread makes what an open event counts, and looks at its count and its ring. The
// test ends with the first sample, and runs for each recording: a virtual machine may have moved since.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace crosstalk::collectors {

/// The result of testing an event.
struct SelfTestFindings {
  const char* failed = nullptr;  ///< the call that failed; null: none did
  int error = 0;                 ///< errno of that
  std::uint64_t period = 0;      ///< with which it was tested
  std::uint64_t count = 0, samples = 0;
  std::uint64_t running_ns = 0;            ///< how long it had a counter
  std::vector<std::uint64_t> counts = {};  ///< of its group, in order
};

enum class SelfTestVerdict : std::uint8_t {
  samples,      ///< it counts and samples
  counts_only,  ///< it counts and never samples
  silent,       ///< it never counts
  untestable,   ///< it had no counter, or a call failed, or it counted too little for a sample
};
/// Pure.
[[nodiscard]] SelfTestVerdict judge_self_test(const SelfTestFindings& findings);
/// Returns why an event that has not passed is not taken, the value found, and the remedy, in one line. Pure.
[[nodiscard]] Error self_test_refusal(const std::string& event, const SelfTestFindings& findings, bool nmi_watchdog);

/// Periods above this are not waited for.
inline constexpr std::uint64_t longest_tested_period = 4096;

/// An open event, which is disabled.
struct OpenGroup {
  int leader = -1;        ///< enables the group
  int sampled = -1;       ///< the event with the ring; it reads its group's counts with their times
  std::size_t place = 0;  ///< of its count among those
};
/// Makes the test, and leaves the event disabled.
[[nodiscard]] SelfTestFindings test_event(const OpenGroup& group, std::uint64_t period);

/// Loads, stores and branches, until `done` says so or 20 ms of CPU time have passed.
void work_until(const std::function<bool()>& done);

/// Names the holders of the counters, and the ways to free them.
[[nodiscard]] std::string holders_of_counters(bool nmi_watchdog);

}  // namespace crosstalk::collectors
