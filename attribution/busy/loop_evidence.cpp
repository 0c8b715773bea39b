// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_evidence.h"

#include <algorithm>
#include <array>

#include "attribution/busy/loop_figures.h"

namespace crosstalk::attribution {

using models::CycleClass;

double waiting_in(const LoopRow& loop) {
  if (!loop.waited) {
    return 0;
  }
  double sampled_s = 0;
  for (const LoopThread& thread : loop.threads) {
    sampled_s += thread.waiting_s;
  }
  return std::min({sampled_s, loop.waited->total(), loop.cpu_s});
}

double kernel_time_in(const LoopRow& loop) {
  return std::min(loop.kernel_s, std::max(0.0, loop.cpu_s - waiting_in(loop)));
}

void LoopEvidence::add(const LoopRow& loop, double working_s) {
  static constexpr std::array<CycleClass, 4> levels = {CycleClass::l1d, CycleClass::l2, CycleClass::l3,
                                                       CycleClass::memory};
  const models::CycleAccount& waits = loop.figures->waits;
  const double all_s = loop.cpu_s - waiting_in(loop) - kernel_time_in(loop);
  const double part = all_s > 0 ? std::max(0.0, working_s) / all_s : 0;
  any_ = true;
  committing_known_ = committing_known_ || waits[CycleClass::committing];
  committing_ += part * waits[CycleClass::committing].value_or(0);
  fpu_ += part * waits[CycleClass::fpu].value_or(0);
  data_ += part * waits[CycleClass::data].value_or(0);
  frontend_ += part * waits[CycleClass::frontend].value_or(0);
  branch_ += part * waits[CycleClass::branch].value_or(0);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    levels_[i] += part * waits[levels[i]].value_or(0);
  }
}

void LoopEvidence::add(const LoopEvidence& other) {
  any_ = any_ || other.any_;
  committing_known_ = committing_known_ || other.committing_known_;
  committing_ += other.committing_;
  fpu_ += other.fpu_;
  data_ += other.data_;
  frontend_ += other.frontend_;
  branch_ += other.branch_;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    levels_[i] += other.levels_[i];
  }
}

void LoopEvidence::tell(double user_s, models::CycleEvidence& evidence) const {
  if (!any_) {
    return;
  }
  evidence.commit_bound_s = committing_known_ ? std::optional(committing_) : std::nullopt;
  const double left = user_s - evidence.commit_bound_s.value_or(0);
  double by_level = 0;
  for (const double seconds : levels_) {
    by_level += seconds;
  }
  if (left <= 0) {
    return;
  }
  // One form for all data: by level if most of it is known by level.
  if (by_level > data_) {
    evidence.data_levels = levels_;
    for (double& share : *evidence.data_levels) {
      share /= by_level;
    }
  }
  evidence.standing = models::Standing{fpu_ / left, (by_level + data_) / left, frontend_ / left, branch_ / left};
}

double tell_of_measured(const Waited& waited, const ThreadTotal& samples, double sampled,
                        models::CycleEvidence& evidence) {
  const double on_cpu_s = std::min(waited.total(), sampled * samples.waiting_ns);
  evidence.lock_s = waited.lock_s, evidence.barrier_s = waited.barrier_s, evidence.condition_s = waited.condition_s;
  evidence.off_cpu_s = std::max(0.0, *evidence.off_cpu_s - (waited.total() - on_cpu_s));
  if (evidence.kernel_s) {
    evidence.kernel_s = sampled * (samples.kernel_ns - samples.waiting_kernel_ns);
  }
  return on_cpu_s;
}

}  // namespace crosstalk::attribution
