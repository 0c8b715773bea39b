// SPDX-License-Identifier: Apache-2.0
// What the accounts of loops say of the time of a thread, or of a region, that runs them.
#pragma once

#include "attribution/model.h"
#include "attribution/timeline/sample_digest.h"
#include "models/cycle_accounting.h"

namespace crosstalk::attribution {

/// Of the loop's CPU time, what threads waited for others, as measured, in seconds.
[[nodiscard]] double waiting_in(const LoopRow& loop);
/// Seconds of its samples in the kernel, those waits aside.
[[nodiscard]] double kernel_time_in(const LoopRow& loop);

/// Seconds, of parts of loops added up.
class LoopEvidence {
 public:
  /// `working_s` of the loop's CPU time, in which it did not wait for other threads, are of what this is about. The
  /// loop has figures.
  void add(const LoopRow& loop, double working_s);
  void add(const LoopEvidence& other);
  /// The loops' waits as evidence of what spends `user_s` in user's code. Nothing where no loop was added.
  void tell(double user_s, models::CycleEvidence& evidence) const;

 private:
  double committing_ = 0, fpu_ = 0, data_ = 0, frontend_ = 0, branch_ = 0;
  bool committing_known_ = false, any_ = false;
  models::LevelShares levels_{};
};

/// Waits that were measured, `waited`, take the place of what other evidence says of them: they hold some of the time
/// in which the thread had no processor, and some of that in the kernel. `sampled` is how many seconds a nanosecond of
/// `samples` stands for. Returns what of them was CPU time, in seconds, of which `evidence.kernel_s` then holds none.
double tell_of_measured(const Waited& waited, const ThreadTotal& samples, double sampled,
                        models::CycleEvidence& evidence);

}  // namespace crosstalk::attribution
