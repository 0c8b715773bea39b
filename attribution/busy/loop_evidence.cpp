// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_evidence.h"

#include <algorithm>
#include <array>

#include "attribution/busy/loop_figures.h"

namespace crosstalk::attribution {

using models::CycleClass;

namespace {

constexpr std::array<CycleClass, 4> levels = {CycleClass::l1d, CycleClass::l2, CycleClass::l3, CycleClass::memory};

void add_to(std::optional<double>& sum, const std::optional<double>& more, double part) {
  if (more) {
    sum = sum.value_or(0) + part * *more;
  }
}

}  // namespace

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
  const models::CycleAccount& waits = loop.figures->waits;
  const double all_s = loop.cpu_s - waiting_in(loop) - kernel_time_in(loop);
  const double part = all_s > 0 ? std::max(0.0, working_s) / all_s : 0;
  any_ = true;
  for (std::size_t i = 0; i < seconds_.size(); ++i) {
    add_to(seconds_[i], waits[static_cast<CycleClass>(i)], part);
  }
}

void LoopEvidence::add(const LoopEvidence& other) {
  any_ = any_ || other.any_;
  for (std::size_t i = 0; i < seconds_.size(); ++i) {
    add_to(seconds_[i], other.seconds_[i], 1);
  }
}

void LoopEvidence::tell(double user_s, models::CycleEvidence& evidence) const {
  if (!any_) {
    return;
  }
  const auto seconds = [this](CycleClass which) { return seconds_[static_cast<std::size_t>(which)]; };
  evidence.commit_bound_s = seconds(CycleClass::committing);
  const double left = user_s - evidence.commit_bound_s.value_or(0);
  if (left <= 0) {
    return;
  }
  std::optional<double> by_level;
  for (const CycleClass level : levels) {
    add_to(by_level, seconds(level), 1);
  }
  std::optional<double> data = seconds(CycleClass::data);
  // One form for all data: by level if most of it is known by level.
  if (by_level && *by_level >= data.value_or(0)) {
    evidence.data_levels = models::LevelShares{1, 0, 0, 0};
    for (std::size_t i = 0; i < levels.size() && *by_level > 0; ++i) {
      (*evidence.data_levels)[i] = seconds(levels[i]).value_or(0) / *by_level;
    }
  }
  add_to(data, by_level, 1);
  const auto part = [left](const std::optional<double>& of) { return of ? std::optional(*of / left) : std::nullopt; };
  evidence.standing = models::Standing{part(seconds(CycleClass::fpu)), part(data), part(seconds(CycleClass::frontend)),
                                       part(seconds(CycleClass::branch))};
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

void tell_of_sleep(const Waited& waited, models::CycleEvidence& evidence) {
  // An estimate: it may be more than there was.
  const double off_cpu_s = evidence.off_cpu_s.value_or(0);
  const double part = waited.total() > off_cpu_s ? off_cpu_s / waited.total() : 1;
  const auto found = [](double seconds) { return seconds > 0 ? std::optional(seconds) : std::nullopt; };
  add_to(evidence.lock_s, found(waited.lock_s), part);
  add_to(evidence.barrier_s, found(waited.barrier_s), part);
  add_to(evidence.condition_s, found(waited.condition_s), part);
  evidence.off_cpu_s = off_cpu_s - part * waited.total();
}

}  // namespace crosstalk::attribution
