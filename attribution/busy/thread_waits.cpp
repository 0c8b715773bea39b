// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/thread_waits.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "attribution/busy/loop_figures.h"

namespace crosstalk::attribution {
namespace {

using models::CycleClass;

/// What one thread's loops say, and what it pays for others.
struct Sums {
  double committing = 0, fpu = 0, data = 0;
  bool committing_known = false, any = false;
  models::LevelShares levels{};
  std::optional<double> lock, barrier, condition;
};
using ByThread = std::unordered_map<std::uint32_t, Sums>;

/// Loops that hold others are left out: theirs is the time of the others, nearly all.
void add_loops(const std::vector<LoopRow>& loops, ByThread& sums) {
  static constexpr std::array<CycleClass, 4> levels = {CycleClass::l1d, CycleClass::l2, CycleClass::l3,
                                                       CycleClass::memory};
  std::set<std::uint32_t> outer;
  for (const LoopRow& loop : loops) {
    if (loop.parent && loop.figures) {
      outer.insert(*loop.parent);
    }
  }
  for (const LoopRow& loop : loops) {
    if (!loop.figures || outer.contains(loop.id) || !(loop.cpu_s > 0)) {
      continue;
    }
    const models::CycleAccount& waits = loop.figures->waits;
    for (const LoopThread& thread : loop.threads) {
      const double part = std::max(0.0, thread.cpu_s - thread.waiting_s) / loop.cpu_s;
      Sums& sum = sums[thread.thread];
      sum.any = true;
      sum.committing_known = sum.committing_known || waits[CycleClass::committing];
      sum.committing += part * waits[CycleClass::committing].value_or(0);
      sum.fpu += part * waits[CycleClass::fpu].value_or(0);
      sum.data += part * waits[CycleClass::data].value_or(0);
      for (std::size_t i = 0; i < levels.size(); ++i) {
        sum.levels[i] += part * waits[levels[i]].value_or(0);
      }
    }
  }
}

void add_waits_for_others(const std::vector<ObjectRow>& objects, ByThread& sums) {
  for (const ObjectRow& object : objects) {
    for (const Cell& cell : object.cells) {
      Sums& sum = sums[cell.consumer];
      std::optional<double>* to = object.sharing.kind == SharingKind::lock        ? &sum.lock
                                  : object.sharing.kind == SharingKind::barrier   ? &sum.barrier
                                  : object.sharing.kind == SharingKind::condition ? &sum.condition
                                                                                  : nullptr;
      if (to != nullptr && cell.cost() > 0) {
        *to = to->value_or(0) + cell.cost();
      }
    }
  }
}

/// The loops' waits as evidence of the thread, whose time in user's code is `user_s`.
void tell_of_loops(const Sums& sums, double user_s, models::CycleEvidence& evidence) {
  if (!sums.any) {
    return;
  }
  evidence.commit_bound_s = sums.committing_known ? std::optional(sums.committing) : std::nullopt;
  const double left = user_s - evidence.commit_bound_s.value_or(0);
  double by_level = 0;
  for (const double seconds : sums.levels) {
    by_level += seconds;
  }
  if (left <= 0) {
    return;
  }
  // One answer for all of a thread's data: by level where that is known of most of it.
  if (by_level > sums.data) {
    evidence.data_levels = sums.levels;
    for (double& share : *evidence.data_levels) {
      share /= by_level;
    }
  }
  evidence.standing = models::Standing{sums.fpu / left, (by_level + sums.data) / left, 0, 0};
}

/// Waits that were measured take the place of what other evidence says of them: they hold some of the time in which the
/// thread had no processor, and some of that in the kernel. Returns what of them was user's CPU time.
double tell_of_measured(const Waited& waited, const ThreadTotal& samples, double cpu_s,
                        models::CycleEvidence& evidence) {
  const double sampled = samples.ns > 0 ? cpu_s / samples.ns : 0;  // seconds that a nanosecond of samples stands for
  const double on_cpu_s = std::min(waited.total(), sampled * samples.waiting_ns);
  evidence.lock_s = waited.lock_s, evidence.barrier_s = waited.barrier_s, evidence.condition_s = waited.condition_s;
  evidence.off_cpu_s = std::max(0.0, *evidence.off_cpu_s - (waited.total() - on_cpu_s));
  if (evidence.kernel_s) {
    evidence.kernel_s = sampled * (samples.kernel_ns - samples.waiting_kernel_ns);
  }
  return std::max(0.0, on_cpu_s - sampled * samples.waiting_kernel_ns);
}

}  // namespace

void add_thread_waits(Analysis& analysis, const ThreadEvidence& known) {
  const std::vector<profile::ThreadRow>& threads = known.rows;
  ByThread sums;
  add_loops(analysis.loops, sums);
  add_waits_for_others(analysis.communication.objects, sums);
  for (ThreadSummary& summary : analysis.threads) {
    if (summary.index >= threads.size() || !summary.cpu_s) {
      continue;
    }
    const profile::ThreadRow& row = threads[summary.index];
    const std::uint64_t end = row.end_ns != 0 ? row.end_ns : analysis.session.end_ns;
    if (end <= row.begin_ns) {
      continue;
    }
    const Sums& found = sums[summary.index];
    models::CycleEvidence evidence;
    evidence.elapsed_s = static_cast<double>(end - row.begin_ns) * 1e-9;
    evidence.off_cpu_s = std::max(0.0, evidence.elapsed_s - *summary.cpu_s);
    evidence.kernel_s = summary.samples > 0 ? std::optional(summary.kernel_share * *summary.cpu_s) : std::nullopt;
    evidence.lock_s = found.lock, evidence.barrier_s = found.barrier, evidence.condition_s = found.condition;
    double others = found.lock.value_or(0) + found.barrier.value_or(0) + found.condition.value_or(0);
    if (summary.index < known.waited.size() && known.waited[summary.index]) {
      others = tell_of_measured(*known.waited[summary.index], known.samples[summary.index], *summary.cpu_s, evidence);
    }
    tell_of_loops(found, *summary.cpu_s - evidence.kernel_s.value_or(0) - others, evidence);
    summary.waits = models::account(evidence);
  }
}

}  // namespace crosstalk::attribution
