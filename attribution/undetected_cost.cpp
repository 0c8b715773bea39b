// SPDX-License-Identifier: Apache-2.0
#include "attribution/undetected_cost.h"

#include <algorithm>
#include <vector>

#include "attribution/model/sentences.h"
#include "models/words.h"

namespace crosstalk::attribution {
namespace {

EvidenceKind evidence_of(const Analysis& analysis) {
  const bool looked = analysis.sampling.armed > 0 && analysis.sight.sees != WatchSight::Sees::nothing;
  if (looked && profile::are_lines_probed(analysis.session)) {
    return EvidenceKind::probed;
  }
  if (looked) {
    return analysis.sight.sees == WatchSight::Sees::part ? EvidenceKind::watched_in_part : EvidenceKind::watched;
  }
  return analysis.sampling.with_address > 0 ? EvidenceKind::sampled : EvidenceKind::none;
}

/// The cost of communication that was seen, at least.
double surely_seen_s(const Communication& communication) {
  double sum_s = 0;
  for (const Amount* amount : {&communication.true_sharing, &communication.false_sharing}) {
    sum_s += amount->cost_ci95 ? amount->cost_ci95->low : 0;
  }
  return sum_s;
}

/// "a, b and c", of those within the limit or beyond it.
std::string listed(const std::vector<CannotSee>& all, bool within_limit) {
  std::vector<std::string> parts;
  for (const CannotSee& one : all) {
    if (one.within_limit == within_limit) {
      parts.push_back(one.what);
    }
  }
  return models::enumerated(parts);
}

}  // namespace

Undetected undetected_cost(const Analysis& analysis, const ReachableTime& time, double uncovered_s) {
  UndetectedFacts facts;
  facts.evidence = evidence_of(analysis);
  facts.silent_kinds = analysis.sight.unseen;
  if (const auto& unseen = analysis.communication.unseen) {
    facts.unseen_s = unseen->cost.true_s + unseen->cost.false_s;
  }
  if (!time.any_company()) {
    facts.reachable_s = 0;
  } else if (cpu_time_known(analysis)) {
    facts.reachable_s = time.reachable_s() + uncovered_s;
    facts.out_of_reach_s = std::min(time.out_of_reach_s() + uncovered_s, *facts.reachable_s);
  }
  facts.seen_s = surely_seen_s(analysis.communication);
  facts.least_s = time.least_s();
  facts.met = time.met();
  return undetected(facts);
}

std::string undetected_in_words(const Analysis& analysis) {
  const Undetected& found = analysis.communication.undetected;
  if (!found.at_most_s) {
    return found.why.empty() ? "" : "The cost of undetected communication is unknown: " + found.why + ".";
  }
  if (*found.at_most_s <= 0) {
    return begun(found.why) + ", so they could not communicate.";
  }
  const std::string share =
      analysis.cpu_s > 0 ? " (" + percent(*found.at_most_s / analysis.cpu_s) + " of the CPU time)" : "";
  return "Undetected communication costs at most " + seconds_in_words(*found.at_most_s) + share +
         (*found.at_most_s < analysis.cpu_s ? ", with 97.5 % confidence" : "") + ". The limit covers " +
         listed(found.cannot_see, true) + ". No figure covers communication with " + listed(found.cannot_see, false) +
         ".";
}

}  // namespace crosstalk::attribution
