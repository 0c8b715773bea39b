// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/regions.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "attribution/busy/loop_evidence.h"
#include "attribution/estimate/intervals.h"
#include "models/cycle_accounting.h"

namespace crosstalk::attribution {
namespace {

constexpr double s_per_ns = 1e-9;

/// One thread's activity in a region and its inner regions.
struct Found {
  bool timed = false;
  std::uint64_t entries = 0;
  double elapsed_s = 0;
  ThreadTotal samples;
  Waited waited;
  LoopEvidence loops;
};

class RegionSums {
 public:
  explicit RegionSums(const RegionFacts& facts) : facts_(facts), by_thread_(facts.regions.size()) {}

  void add_times() {
    for (const profile::ThreadRegionRow& row : facts_.threads) {
      if (!knows(row.thread.value, row.region)) {
        continue;
      }
      Found& found = at(row.region, row.thread.value);
      found.timed = true;
      found.entries += row.entries;
      found.elapsed_s += static_cast<double>(row.elapsed_ns) * s_per_ns;
      upwards(row.region, row.thread.value, [&](Found& of) {
        for (std::size_t what = 0; what < profile::wait_classes; ++what) {
          of.waited.add(static_cast<profile::WaitClass>(what), static_cast<double>(row.waited_ns[what]) * s_per_ns);
        }
      });
    }
  }
  void add_samples() {
    for (const auto& [key, total] : facts_.samples) {
      if (knows(key.first, key.second)) {
        upwards(key.second, key.first, [&, &added = total](Found& of) { of.samples.add(added); });
      }
    }
  }
  void add_loops(std::span<const LoopRow> loops, const LoopIndex& index) {
    for (const CodeTotal& total : facts_.code) {
      const auto at =
          total.place && knows(total.thread.value, total.region) ? index.innermost(*total.place) : std::nullopt;
      if (at && loops[*at].figures && loops[*at].cpu_s > 0) {
        const double working_s = (total.ns - total.waiting_ns - total.kernel_ns()) * s_per_ns;
        upwards(total.region, total.thread.value, [&](Found& of) { of.loops.add(loops[*at], working_s); });
      }
    }
  }
  [[nodiscard]] const std::map<std::uint32_t, Found>& of(std::size_t region) const { return by_thread_[region]; }

 private:
  [[nodiscard]] bool knows(std::uint32_t thread, profile::RegionId region) const {
    return thread < facts_.of_threads.size() && region.value != 0 && region.value <= facts_.regions.size();
  }
  Found& at(profile::RegionId region, std::uint32_t thread) { return by_thread_[region.value - 1][thread]; }
  /// Applies `change` to the region and those around it. A region's parent has a lower number.
  template <class Change>
  void upwards(profile::RegionId region, std::uint32_t thread, const Change& change) {
    for (; region.value != 0; region = facts_.regions[region.value - 1].parent) {
      change(at(region, thread));
    }
  }

  const RegionFacts& facts_;
  std::vector<std::map<std::uint32_t, Found>> by_thread_;  // by region
};

/// Converts samples' weights to nanoseconds of CPU time.
ThreadTotal scaled(ThreadTotal total, double factor) {
  for (double* sum : {&total.ns, &total.kernel_ns, &total.waiting_ns, &total.waiting_kernel_ns}) {
    *sum *= factor;
  }
  total.ns2 *= factor * factor;
  return total;
}

/// The activity of one thread, or of all together, in a region.
struct RegionEvidence {
  double elapsed_s = 0;
  bool sampled = true;
  ThreadTotal samples;  // scaled
  double event_ns = 0;  // the time that one more sample would represent
  std::optional<Waited> waited = Waited();
  LoopEvidence loops;

  void add(const RegionEvidence& other) {
    elapsed_s += other.elapsed_s;
    sampled = sampled && other.sampled;
    samples.add(other.samples);
    event_ns = std::max(event_ns, other.event_ns);
    loops.add(other.loops);
    if (!other.waited) {
      waited.reset();
    } else if (waited) {
      waited->lock_s += other.waited->lock_s;
      waited->barrier_s += other.waited->barrier_s;
      waited->condition_s += other.waited->condition_s;
    }
  }
  [[nodiscard]] double cpu_s() const { return std::min(elapsed_s, samples.ns * s_per_ns); }
  [[nodiscard]] Interval cpu_ci95() const {
    const Interval ns = event_interval(samples.ns, samples.ns2, event_ns);
    return {std::min(elapsed_s, ns.low * s_per_ns), std::min(elapsed_s, ns.high * s_per_ns)};
  }
};

/// True if the samples determine the CPU time well enough. A region with hardly any samples may have slept or computed.
bool says_enough(const Interval& cpu, double elapsed_s) {
  constexpr double widest = 0.5;
  return cpu.high - cpu.low <= widest * elapsed_s;
}

models::CycleAccount account_of(const RegionEvidence& of) {
  models::CycleEvidence evidence;
  evidence.elapsed_s = of.elapsed_s;
  if (!of.sampled || !says_enough(of.cpu_ci95(), of.elapsed_s)) {
    if (of.waited) {
      evidence.lock_s = of.waited->lock_s;
      evidence.barrier_s = of.waited->barrier_s;
      evidence.condition_s = of.waited->condition_s;
    }
    models::CycleAccount account = models::account(evidence);
    account.notes = {
        "Some regions had too few samples to tell their time on a processor: that time is not attributed."};
    return account;
  }
  evidence.off_cpu_s = std::max(0.0, of.elapsed_s - of.cpu_s());
  evidence.kernel_s = of.samples.samples > 0 ? std::optional(of.samples.kernel_ns * s_per_ns) : std::nullopt;
  const double others = of.waited ? tell_of_measured(*of.waited, of.samples, s_per_ns, evidence) : 0;
  of.loops.tell(of.cpu_s() - evidence.kernel_s.value_or(0) - others, evidence);
  return models::account(evidence);
}

RegionEvidence evidence_of(std::uint32_t thread, const Found& found, const RegionFacts& facts,
                           std::span<const ThreadSummary> threads) {
  RegionEvidence evidence;
  evidence.elapsed_s = found.elapsed_s;
  const ThreadTotal& all = facts.of_threads[thread];
  const std::optional<double> cpu_s = thread < threads.size() ? threads[thread].cpu_s : std::nullopt;
  const double factor = cpu_s && all.ns > 0 ? *cpu_s / (all.ns * s_per_ns) : 0;
  evidence.sampled = factor > 0;
  evidence.samples = scaled(found.samples, factor);
  evidence.event_ns = all.samples > 0 ? factor * all.ns / static_cast<double>(all.samples) : 0;
  const bool measured = thread < facts.waited.size() && facts.waited[thread];
  evidence.waited = measured ? std::optional(found.waited) : std::nullopt;
  evidence.loops = found.loops;
  return evidence;
}

RegionThread thread_of(std::uint32_t thread, const Found& found, const RegionEvidence& evidence) {
  RegionThread row;
  row.thread = thread;
  row.entries = found.entries;
  row.elapsed_s = found.elapsed_s;
  row.samples = found.samples.samples;
  if (evidence.sampled) {
    row.cpu_s = evidence.cpu_s();
    row.cpu_ci95 = evidence.cpu_ci95();
  }
  row.waited = evidence.waited;
  row.waits = account_of(evidence);
  return row;
}

/// Sums over the region's threads.
void add_up(const RegionEvidence& all, RegionSummary& region) {
  std::vector<double> work_s;
  for (const RegionThread& thread : region.threads) {
    region.entries += thread.entries;
    region.samples += thread.samples;
    if (all.waited) {
      work_s.push_back(std::max(0.0, thread.elapsed_s - thread.waited->total()));
    } else if (all.sampled) {
      work_s.push_back(*thread.cpu_s);
    }
  }
  region.elapsed_s = all.elapsed_s;
  if (region.threads.empty()) {
    return;
  }
  if (all.sampled) {
    region.cpu_s = all.cpu_s();
    region.cpu_ci95 = all.cpu_ci95();
  }
  // Without measured waits, imbalance depends on samples, which must be enough.
  if (all.waited || (all.sampled && says_enough(region.cpu_ci95, *region.cpu_s))) {
    region.imbalance = models::imbalance(work_s);
  }
  region.waits = account_of(all);
}

std::string path_of(std::span<const profile::RegionRow> regions, profile::RegionId id) {
  const profile::RegionRow& row = regions[id.value - 1];
  return row.parent.value == 0 ? row.name : path_of(regions, row.parent) + " > " + row.name;
}

/// Lists depth first, children of one parent by time.
void list(std::vector<RegionSummary>& from, std::optional<std::uint32_t> parent, std::vector<RegionSummary>& to) {
  std::vector<RegionSummary*> here;
  for (RegionSummary& region : from) {
    if (region.parent == parent) {
      here.push_back(&region);
    }
  }
  std::stable_sort(here.begin(), here.end(),
                   [](const RegionSummary* a, const RegionSummary* b) { return a->elapsed_s > b->elapsed_s; });
  for (RegionSummary* region : here) {
    const std::uint32_t id = region->id;
    to.push_back(std::move(*region));
    list(from, id, to);
  }
}

}  // namespace

std::vector<RegionSummary> region_summaries(const RegionFacts& facts, std::span<const ThreadSummary> threads,
                                            std::span<const LoopRow> loops, const LoopIndex& index) {
  RegionSums sums(facts);
  sums.add_times();
  sums.add_samples();
  sums.add_loops(loops, index);
  std::vector<RegionSummary> all;
  for (const profile::RegionRow& row : facts.regions) {
    RegionSummary region;
    region.id = row.id.value;
    region.parent = row.parent.value != 0 ? std::optional(row.parent.value) : std::nullopt;
    region.name = row.name;
    region.path = path_of(facts.regions, row.id);
    for (profile::RegionId at = row.parent; at.value != 0; at = facts.regions[at.value - 1].parent) {
      ++region.depth;
    }
    RegionEvidence together;
    for (const auto& [thread, found] : sums.of(row.id.value - 1)) {
      if (found.timed) {
        const RegionEvidence evidence = evidence_of(thread, found, facts, threads);
        region.threads.push_back(thread_of(thread, found, evidence));
        together.add(evidence);
      }
    }
    add_up(together, region);
    all.push_back(std::move(region));
  }
  std::vector<RegionSummary> result;
  list(all, std::nullopt, result);
  return result;
}

}  // namespace crosstalk::attribution
