// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/estimator.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "attribution/estimate/censoring.h"
#include "attribution/estimate/cost_attribution.h"
#include "attribution/estimate/return_balance.h"
#include "attribution/estimate/unseen.h"

namespace crosstalk::attribution {
namespace {

/// True if other threads filled the watch before anything could be charged. The sampled thread's return decides the
/// value of a counting sample.
bool filled(const Evidence& evidence) {
  return evidence.watch != nullptr && evidence.watch->close == profile::CloseReason::full && loads(evidence.sampled) &&
         (!is_count(evidence.unit) || own_return(evidence) == evidence.accesses.end());
}

/// Gives the weight of undecided watches to decided ones, on lines that are known to be exchanged. A watch that was
/// full of reads before the next store was read is undecided. Other strata may hold lines without stores, whose watches
/// are decided.
void weigh_decided_for_undecided(Estimate& estimate, const std::map<std::uint32_t, double>& undecided) {
  for (Contribution& c : estimate.contributions) {
    const auto found = undecided.find(c.stratum);
    const Stratum& stratum = estimate.expansion.strata[c.stratum];
    if (found != undecided.end() && stratum.one_line && found->second < stratum.watched_weight) {
      const double factor = stratum.watched_weight / (stratum.watched_weight - found->second);
      c.cost *= factor;
      c.late *= factor;
    }
  }
}

struct ThreadWeight {                    // in one unit
  double seen = 0, late = 0, limit = 0;  // seen, late: what is charged

  /// The part of the seen charges that fits the limit.
  [[nodiscard]] double fits_of_seen() const { return limit > 0 && seen > limit ? limit / seen : 1; }
  /// The part of the charges for late communication that also fits the limit.
  [[nodiscard]] double fits_of_late() const {
    return limit > 0 && seen + late > limit ? std::clamp((limit - seen) / late, 0.0, 1.0) : 1;
  }
};

/// Scales charges down to a thread's time; `thread_of` returns the thread of a contribution. Cuts charges for late
/// communication first: their estimate assumes the same delays on all lines. If one line waits for a thread without a
/// processor, the other lines' late charges would otherwise displace its seen ones.
template <class ThreadOf>
void keep_within(std::vector<Contribution>& contributions, std::span<const Stratum> strata, profile::WeightUnit unit,
                 std::map<std::uint32_t, ThreadWeight> threads,  // NOLINT(performance-unnecessary-value-param): changed
                 ThreadOf thread_of) {
  for (const Contribution& c : contributions) {
    if (strata[c.stratum].unit == unit) {
      ThreadWeight& thread = threads[thread_of(c)];
      const double expansion = strata[c.stratum].expansion();
      thread.seen += expansion * (c.cost - c.late);
      thread.late += expansion * c.late;
    }
  }
  for (Contribution& c : contributions) {
    if (strata[c.stratum].unit == unit) {
      const ThreadWeight& thread = threads[thread_of(c)];
      const double seen = c.cost - c.late;
      c.late *= thread.fits_of_late();
      c.cost = seen * thread.fits_of_seen() + c.late;
    }
  }
}

/// Limits charges to the samples. A thread's samples in strata of its own represent at most all its samples there, and
/// no thread consumes for longer than it ran, or more often than it accessed memory: other threads' observations are
/// charged to it by chance, too.
void keep_within_sampled(std::vector<Contribution>& contributions, std::span<const Stratum> strata,
                         profile::WeightUnit unit) {
  std::map<std::uint32_t, ThreadWeight> threads;
  double all = 0;
  for (const Stratum& stratum : strata) {
    if (stratum.unit == unit) {
      const double weight = std::max(stratum.eligible_weight, stratum.watched_weight);
      threads[stratum.thread].limit += weight;
      all += weight;
    }
  }
  // Time in strata of several threads may be any thread's. So little of it is watched that one event may exceed it, and
  // a cut would make the estimate too low on average.
  const double anyones = threads.contains(Stratum::several) ? threads[Stratum::several].limit : 0;
  threads[Stratum::several].limit = all;
  keep_within(contributions, strata, unit, threads, [&](const Contribution& c) { return strata[c.stratum].thread; });
  for (const Contribution& c : contributions) {
    threads.try_emplace(c.seen->consumer.thread.value);
  }
  for (auto& [id, thread] : threads) {
    thread.limit += id != Stratum::several ? anyones : 0;
  }
  keep_within(contributions, strata, unit, threads,
              [](const Contribution& c) { return c.seen->consumer.thread.value; });
}

ReturnBalance balance_of(const WatchEvidence& watches, std::span<const Stratum> strata) {
  ReturnBalance balance;
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const Evidence evidence = watches.at(i);
    if (evidence.stratum < strata.size()) {
      balance.add(evidence, strata[evidence.stratum].expansion());
    }
  }
  balance.finish();
  return balance;
}

void limit_unseen(const Sight& sight, const Strata& strata, const Censoring* late,
                  const ByUnit<std::uint64_t>& usable_watches, Expansion& expansion) {
  expansion.unseen = sight.limits(strata, late, profile::WeightUnit::ns);
  for (const profile::WeightUnit unit : {profile::WeightUnit::micro_ops, profile::WeightUnit::accesses}) {
    if (usable_watches[unit] >= least_watches_of_estimate) {
      expansion.unseen_counts = sight.limits(strata, late, unit);
    }
  }
}

bool any_counts(std::span<const Stratum> strata) {
  return std::any_of(strata.begin(), strata.end(), [](const Stratum& stratum) { return is_count(stratum.unit); });
}

using Of = StrataPolicy::Of;
constexpr StrataPolicy by_kind{Of::any, false, true};
constexpr std::array<Estimator, 5> known_estimators = {{
    {"post_stratified",
     "time of samples like those whose watches saw communication, line by line where it is known",
     {},
     charge_communications,
     true,
     true,
     true,
     true},
    {"board",
     "published: each trap of a thread on a line that another was sampled at counts one sampling period",
     {Of::any, false, false},
     charge_board,
     false},
    {"board_ipw", "the same, each trap divided by the chance that its thread, word and watch were drawn", by_kind,
     charge_board_weighted, false},
    {"next_access",
     "time of sampled stores, to the thread that accesses the line next",
     {Of::stores, true, true},
     charge_next_access,
     false},
    {"next_store",
     "time of sampled loads, from the thread that stores to the line next",
     {Of::loads, true, true},
     charge_next_store,
     false,
     false,
     true},
}};

}  // namespace

std::span<const Estimator> estimators() { return known_estimators; }

Estimate estimate(const Estimator& estimator, const WatchEvidence& watches, const Strata& strata,
                  std::string count_unknown) {
  Estimate result;
  result.expansion = expansion_of(strata);
  const bool balanced = estimator.balanced && count_unknown.empty();
  result.expansion.count_unknown = std::move(count_unknown);
  ByUnit<std::uint64_t> usable_watches;
  std::map<std::uint32_t, double> undecided_weight;  // by stratum
  Censoring censoring;
  Sight sight;
  const std::vector<Stratum>& all_strata = result.expansion.strata;
  const ReturnBalance balance = balanced && any_counts(all_strata) ? balance_of(watches, all_strata) : ReturnBalance();
  result.contributions.reserve(watches.communications());
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const Evidence evidence = watches.at(i);
    if (evidence.stratum < result.expansion.strata.size()) {
      usable_watches[evidence.unit] += evidence.weight > 0 ? 1 : 0;
      const std::size_t before = result.contributions.size();
      estimator.charge(evidence, static_cast<std::uint32_t>(i), result);
      const double part = balance.part(evidence);
      for (Contribution& c : std::span(result.contributions).subspan(before)) {
        c.cost *= part;
      }
      censoring.add(evidence, std::span(result.contributions).subspan(before));
      const bool undecided = estimator.till_seen && result.contributions.size() == before &&
                             evidence.interrupted.empty() && filled(evidence);
      sight.add(evidence, !undecided);
      if (undecided) {
        undecided_weight[evidence.stratum] += evidence.weight;
      }
    }
  }
  std::uint64_t usable = 0;  // of the unit that has the most
  for (const profile::WeightUnit unit : all_weight_units) {
    usable = std::max(usable, usable_watches[unit]);
  }
  if (estimator.censoring) {
    censoring.weigh(result.contributions, result.expansion.strata);
  }
  weigh_decided_for_undecided(result, undecided_weight);
  for (const profile::WeightUnit unit : all_weight_units) {
    if (estimator.within_time) {
      keep_within_sampled(result.contributions, result.expansion.strata, unit);
    }
  }
  if (estimator.policy.expanded && usable >= least_watches_of_estimate) {
    limit_unseen(sight, strata, estimator.censoring ? &censoring : nullptr, usable_watches, result.expansion);
  }
  if (usable < least_watches_of_estimate) {
    result.expansion.unknown = "the estimator " + std::string(estimator.name) + " has " + std::to_string(usable) +
                               (usable == 1 ? " watch" : " watches") + " to go by and needs at least " +
                               std::to_string(least_watches_of_estimate);
    for (Contribution& contribution : result.contributions) {
      contribution.cost = 0;
    }
  }
  return result;
}

Result<const Estimator*> find_estimator(std::string_view name) {
  if (name == "automatic") {
    return &known_estimators.front();
  }
  std::string names = "automatic";
  for (const Estimator& estimator : known_estimators) {
    if (estimator.name == name) {
      return &estimator;
    }
    names += ", " + std::string(estimator.name);
  }
  return fail(ErrorCode::invalid_argument,
              "there is no estimator called '" + std::string(name) + "'; choose one of: " + names);
}

}  // namespace crosstalk::attribution
