// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/estimator.h"

#include <algorithm>
#include <array>
#include <map>

#include "attribution/estimate/censoring.h"
#include "attribution/estimate/cost_attribution.h"

namespace crosstalk::attribution {
namespace {

/// Did other threads fill the watch before anything could be charged?
bool filled(const Evidence& evidence) {
  return evidence.watch != nullptr && evidence.watch->close == profile::CloseReason::full && loads(evidence.sampled);
}

/// On a line that is known to be exchanged, a watch that was full of reads before the next store was read says nothing:
/// those that saw the end stand for it. Other strata may hold lines that nobody stores to, whose watches are decided.
void let_decided_speak(Estimate& estimate, const std::map<std::uint32_t, double>& undecided_ns) {
  for (Contribution& c : estimate.contributions) {
    const auto found = undecided_ns.find(c.stratum);
    const Stratum& stratum = estimate.expansion.strata[c.stratum];
    if (found != undecided_ns.end() && stratum.one_line && found->second < stratum.watched_ns) {
      const double factor = stratum.watched_ns / (stratum.watched_ns - found->second);
      c.cost_ns *= factor;
      c.late_ns *= factor;
    }
  }
}

struct ThreadTime {
  double seen_ns = 0, late_ns = 0, limit_ns = 0;  // seen, late: what is charged

  /// The part of what was seen that there is time for.
  [[nodiscard]] double fits_of_seen() const { return limit_ns > 0 && seen_ns > limit_ns ? limit_ns / seen_ns : 1; }
  /// The part of what came too late to be seen that there is time for besides.
  [[nodiscard]] double fits_of_late() const {
    return limit_ns > 0 && seen_ns + late_ns > limit_ns ? std::clamp((limit_ns - seen_ns) / late_ns, 0.0, 1.0) : 1;
  }
};

/// Scales down what is charged to more than there is of a thread's time; `thread_of` says whose a contribution is. What
/// was too late to be seen goes first: how late communication comes is taken to be the same on all lines, and where it
/// is not (one line waits for a thread that has no processor), others would be charged for it at the expense of that
/// one.
template <class ThreadOf>
void keep_within(std::vector<Contribution>& contributions, std::span<const Stratum> strata,
                 std::map<std::uint32_t, ThreadTime> times,  // NOLINT(performance-unnecessary-value-param): changed
                 ThreadOf thread_of) {
  for (const Contribution& c : contributions) {
    ThreadTime& time = times[thread_of(c)];
    const double expansion = strata[c.stratum].expansion();
    time.seen_ns += expansion * (c.cost_ns - c.late_ns);
    time.late_ns += expansion * c.late_ns;
  }
  for (Contribution& c : contributions) {
    const ThreadTime& time = times[thread_of(c)];
    const double seen_ns = c.cost_ns - c.late_ns;
    c.late_ns *= time.fits_of_late();
    c.cost_ns = seen_ns * time.fits_of_seen() + c.late_ns;
  }
}

/// No thread's samples in strata of its own stand for more than its time there, and no thread has consumed for longer
/// than it ran: what is seen of others is charged to them by chance, too.
void keep_within_time(std::vector<Contribution>& contributions, std::span<const Stratum> strata) {
  std::map<std::uint32_t, ThreadTime> times;
  double all_ns = 0;
  for (const Stratum& stratum : strata) {
    const double ns = std::max(stratum.eligible_ns, stratum.watched_ns);
    times[stratum.thread].limit_ns += ns;
    all_ns += ns;
  }
  // Time in strata of several threads may be any thread's. So little of it is watched that one event may exceed it: to
  // cut such would leave too little on average.
  const double anyones = times.contains(Stratum::several) ? times[Stratum::several].limit_ns : 0;
  times[Stratum::several].limit_ns = all_ns;
  keep_within(contributions, strata, times, [&](const Contribution& c) { return strata[c.stratum].thread; });
  for (const Contribution& c : contributions) {
    times.try_emplace(c.seen->consumer.thread.value);
  }
  for (auto& [thread, time] : times) {
    time.limit_ns += thread != Stratum::several ? anyones : 0;
  }
  keep_within(contributions, strata, times, [](const Contribution& c) { return c.seen->consumer.thread.value; });
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

/// How long lines are watched that nothing is known of: mostly briefly, some by chance for longer.
struct Durations {
  std::uint64_t brief_ns = UINT64_MAX;  // horizon of brief watches
  std::uint64_t lasting_ns = 0;         // how long those last that see nothing, in the middle
  double long_weight = 1;
};

/// Brief watches end by a clock of the CPU time of the thread that has opened them, some time after the sample: how
/// long that is, their ends tell.
std::uint64_t lasting_of(std::span<const profile::WatchRow> watches, std::span<const OwnershipTimeline> timelines,
                         std::uint64_t brief_ns) {
  std::vector<std::uint64_t> lasted;
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const profile::WatchRow& watch = watches[i];
    const bool saw_nobody = std::all_of(timelines[i].accesses.begin(), timelines[i].accesses.end(),
                                        [&](const AccessPoint& point) { return point.thread == watch.thread; });
    if (!watch.suspected && watch.horizon_ns == brief_ns && watch.close == profile::CloseReason::horizon &&
        saw_nobody && watch.close_ns > watch.time_ns) {
      lasted.push_back(watch.close_ns - watch.time_ns);
    }
  }
  if (lasted.empty()) {
    return brief_ns;
  }
  const auto middle = lasted.begin() + static_cast<std::ptrdiff_t>(lasted.size() / 2);
  std::nth_element(lasted.begin(), middle, lasted.end());
  return std::max(*middle, brief_ns);
}

/// Until when a brief watch would have seen what `watch` has seen. Once another thread has taken the line it would have
/// gone on for a while, and ended with the first trap after that.
std::uint64_t brief_until(const profile::WatchRow& watch, std::span<const AccessPoint> accesses,
                          std::uint64_t lasting_ns) {
  std::uint64_t until = watch.time_ns + lasting_ns;
  bool taken = false;
  for (const AccessPoint& point : accesses) {
    if (point.time_ns > until) {
      return taken ? point.time_ns : until;
    }
    if (!taken && point.thread != watch.thread) {
      taken = true;
      until = std::max(until, point.time_ns + profile::verdict_ns);
    }
  }
  return until;
}

Durations durations_of(std::span<const profile::WatchRow> watches, std::span<const OwnershipTimeline> timelines) {
  Durations result;
  double all = 0;
  double longer = 0;
  for (const profile::WatchRow& watch : watches) {
    if (!watch.suspected) {
      result.brief_ns = std::min(result.brief_ns, watch.horizon_ns);
    }
  }
  for (const profile::WatchRow& watch : watches) {
    all += watch.suspected ? 0 : 1;
    longer += !watch.suspected && watch.horizon_ns > result.brief_ns ? 1 : 0;
  }
  result.long_weight = longer > 0 ? all / longer : 1;
  result.lasting_ns = lasting_of(watches, timelines, result.brief_ns);
  return result;
}

}  // namespace

std::vector<Evidence> evidence_of(std::span<const profile::WatchRow> watches,
                                  std::span<const OwnershipTimeline> timelines, const Strata& strata) {
  const Durations durations = durations_of(watches, timelines);
  std::vector<Evidence> evidence;
  evidence.reserve(watches.size());
  for (std::size_t i = 0; i < watches.size(); ++i) {
    const profile::WatchRow& watch = watches[i];
    Evidence seen{watch.thread,          static_cast<double>(watch.sample_cpu_ns),
                  strata.of_watch(i),    timelines[i].communications,
                  timelines[i].accesses, &watch,
                  watch.sample_access};
    seen.interrupted = timelines[i].interrupted;
    seen.brief = watch.horizon_ns <= durations.brief_ns;
    if (!seen.brief) {
      seen.brief_until_ns = brief_until(watch, timelines[i].accesses, durations.lasting_ns);
      seen.long_weight = watch.suspected ? 1 : durations.long_weight;
    }
    evidence.push_back(seen);
  }
  return evidence;
}

Expansion expansion_of(const Strata& strata) { return {strata.all(), strata.threads(), std::nullopt}; }

std::span<const Estimator> estimators() { return known_estimators; }

Estimate estimate(const Estimator& estimator, std::span<const Evidence> evidence, const Strata& strata) {
  Estimate result;
  result.expansion = expansion_of(strata);
  std::uint64_t usable = 0;
  std::map<std::uint32_t, double> undecided_ns;  // by stratum
  Censoring censoring;
  Sight sight;
  for (std::size_t i = 0; i < evidence.size(); ++i) {
    if (evidence[i].stratum < result.expansion.strata.size()) {
      usable += evidence[i].cpu_ns > 0 ? 1 : 0;
      const std::size_t before = result.contributions.size();
      estimator.charge(evidence[i], static_cast<std::uint32_t>(i), result);
      censoring.add(evidence[i], std::span(result.contributions).subspan(before));
      const bool undecided = estimator.till_seen && result.contributions.size() == before &&
                             evidence[i].interrupted.empty() && filled(evidence[i]);
      sight.add(evidence[i], !undecided);
      if (undecided) {
        undecided_ns[evidence[i].stratum] += evidence[i].cpu_ns;
      }
    }
  }
  if (estimator.censoring) {
    censoring.weigh(result.contributions, result.expansion.strata);
  }
  let_decided_speak(result, undecided_ns);
  if (estimator.within_time) {
    keep_within_time(result.contributions, result.expansion.strata);
  }
  if (estimator.policy.expanded && usable >= least_watches_of_estimate) {
    result.expansion.unseen = sight.limits(strata, estimator.censoring ? &censoring : nullptr);
  }
  if (usable < least_watches_of_estimate) {
    result.expansion.unknown = "the estimator " + std::string(estimator.name) + " has " + std::to_string(usable) +
                               (usable == 1 ? " watch" : " watches") + " to go by and needs at least " +
                               std::to_string(least_watches_of_estimate) + "; record for longer";
    for (Contribution& contribution : result.contributions) {
      contribution.cost_ns = 0;
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
