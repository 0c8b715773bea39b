// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/thread_waits.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "attribution/busy/loop_evidence.h"

namespace crosstalk::attribution {
namespace {

/// Evidence from one thread's loops, and its costs of communication.
struct WaitSums {
  LoopEvidence loops;
  std::optional<double> lock, barrier, condition;
};
using ByThread = std::unordered_map<std::uint32_t, WaitSums>;

/// Leaves out loops with inner loops: nearly all their time is that of the inner ones.
void add_loops(const std::vector<LoopRow>& loops, ByThread& sums) {
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
    for (const LoopThread& thread : loop.threads) {
      sums[thread.thread].loops.add(loop, thread.cpu_s - thread.waiting_s - thread.kernel_s);
    }
  }
}

void add_waits_for_others(const std::vector<ObjectRow>& objects, ByThread& sums) {
  for (const ObjectRow& object : objects) {
    for (const Cell& cell : object.cells) {
      WaitSums& sum = sums[cell.consumer];
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

/// Scales the scheduler's counts, taken while the recorder looked, to all of the thread's time on a processor.
std::optional<double> runnable_s(const profile::ThreadRow& row, double cpu_s) {
  return row.ran_ns != 0 ? std::optional(cpu_s * static_cast<double>(row.waited_ns) / static_cast<double>(row.ran_ns))
                         : std::nullopt;
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
    const WaitSums& found = sums[summary.index];
    models::CycleEvidence evidence;
    evidence.elapsed_s = static_cast<double>(end - row.begin_ns) * 1e-9;
    evidence.off_cpu_s = std::max(0.0, evidence.elapsed_s - *summary.cpu_s);
    evidence.runnable_s = runnable_s(row, *summary.cpu_s);
    evidence.kernel_s = summary.kernel_share ? std::optional(*summary.kernel_share * *summary.cpu_s) : std::nullopt;
    evidence.lock_s = found.lock, evidence.barrier_s = found.barrier, evidence.condition_s = found.condition;
    double others = found.lock.value_or(0) + found.barrier.value_or(0) + found.condition.value_or(0);
    const Waited* const waited =
        summary.index < known.waited.size() && known.waited[summary.index] ? &*known.waited[summary.index] : nullptr;
    if (waited != nullptr && waited->sampled) {
      tell_of_sleep(*waited, evidence);
    } else if (waited != nullptr) {
      const ThreadTotal& samples = known.samples[summary.index];
      others = tell_of_measured(*waited, samples, samples.ns > 0 ? *summary.cpu_s / samples.ns : 0, evidence);
    }
    found.loops.tell(*summary.cpu_s - evidence.kernel_s.value_or(0) - others, evidence);
    summary.waits = models::account(evidence);
  }
}

}  // namespace crosstalk::attribution
