// SPDX-License-Identifier: Apache-2.0
// Evidence about the time of a thread, or of a region, from the accounts of the loops that it runs.
#pragma once

#include <array>
#include <optional>

#include "attribution/model/model.h"
#include "attribution/samples/sample_digest.h"
#include "models/cycle_accounting.h"

namespace crosstalk::attribution {

/// Measured waits for other threads within the loop's CPU time, in seconds.
[[nodiscard]] double waiting_in(const LoopRow& loop);
/// Seconds of the loop's samples in the kernel, without those waits.
[[nodiscard]] double kernel_time_in(const LoopRow& loop);

/// Sums of parts of loops, in seconds.
class LoopEvidence {
 public:
  /// Adds a loop, which has figures. `working_s`: the part of its CPU time, without waits for other threads, that
  /// belongs to this thread or region.
  void add(const LoopRow& loop, double working_s);
  void add(const LoopEvidence& other);
  /// Adds the loops' waits as evidence of `user_s` seconds in user code. Adds nothing if no loop was added.
  void tell(double user_s, models::CycleEvidence& evidence) const;

 private:
  /// In the order of classes; absent: no loop's time tells.
  std::array<std::optional<double>, models::cycle_classes> seconds_{};
  bool any_ = false;
};

/// Replaces other evidence of waits by measured ones, `waited`: they include some of the time without a processor, and
/// some of the time in the kernel. `sampled`: seconds for each nanosecond of `samples`. Returns the waits' CPU time in
/// seconds, which `evidence.kernel_s` then excludes.
double tell_of_measured(const Waited& waited, const ThreadTotal& samples, double sampled,
                        models::CycleEvidence& evidence);
/// Adds sampled waits, which are sleep, to evidence of waits on the processor. A thread without any may have waited
/// awake.
void tell_of_sleep(const Waited& waited, models::CycleEvidence& evidence);

}  // namespace crosstalk::attribution
