// SPDX-License-Identifier: Apache-2.0
#include "attribution/model/undetected.h"

#include <algorithm>
#include <utility>

namespace crosstalk::attribution {
namespace {

constexpr const char* all_counts = "all CPU time in user mode while several threads lived counts";

std::vector<CannotSee> blind_spots(const UndetectedFacts& facts) {
  switch (facts.evidence) {
    case EvidenceKind::watched_in_part:
      return {{"silent_kinds", facts.silent_kinds}, {"unarmed_words", "words that no watch was set on"}};
    case EvidenceKind::watched:
      return {{"unarmed_words", "words that no watch was set on"}};
    case EvidenceKind::probed:
      return {{"silent_stores", "stores that leave a value as it was"},
              {"values_that_return", "values that change and change back"},
              {"absent_partners", "stores by threads that did not run while another stood still"}};
    case EvidenceKind::sampled:
      return {{"unsampled_lines", "all communication except on lines where samples of several threads show it"}};
    case EvidenceKind::none:
      break;
  }
  return {{"everything", "any line: none was watched, probed or sampled"}};
}

std::vector<CannotSee> cannot_see(const UndetectedFacts& facts) {
  std::vector<CannotSee> list = blind_spots(facts);
  if (facts.evidence != EvidenceKind::none && facts.out_of_reach_s > 0) {
    list.push_back({"out_of_reach", "time that could be neither watched nor probed"});
  }
  list.push_back({"kernel", "the kernel", false});
  list.push_back({"devices", "devices", false});
  list.push_back({"other_processes", "processes that were not recorded", false});
  list.push_back({"ended_threads", "threads that had ended", false});
  return list;
}

/// Why nothing smaller than all time can be said.
std::string why_all(EvidenceKind evidence) {
  switch (evidence) {
    case EvidenceKind::watched:
      return "the watches give no limit";
    case EvidenceKind::watched_in_part:
      return "watchpoints do not fire for all accesses";
    case EvidenceKind::probed:
      return "probes miss stores that leave a value as it was";
    case EvidenceKind::sampled:
      return "nothing was watched or probed";
    case EvidenceKind::none:
      break;
  }
  return "nothing was watched, probed or sampled by its address";
}

}  // namespace

const char* evidence_name(EvidenceKind evidence) {
  switch (evidence) {
    case EvidenceKind::watched:
      return "watched";
    case EvidenceKind::watched_in_part:
      return "watched_in_part";
    case EvidenceKind::probed:
      return "probed";
    case EvidenceKind::sampled:
      return "sampled";
    case EvidenceKind::none:
      break;
  }
  return "none";
}

Undetected undetected(const UndetectedFacts& facts) {
  Undetected result{facts.evidence, std::nullopt, {}, cannot_see(facts), facts.met};
  if (!facts.reachable_s) {
    result.why = "the threads' CPU time is not known";
    return result;
  }
  if (*facts.reachable_s <= 0) {
    result.at_most_s = 0;
    result.why = "no two recorded threads lived at the same time";
    result.met = false;
    return result;
  }
  const double left_s =
      std::clamp(*facts.reachable_s - facts.seen_s, std::min(facts.least_s, *facts.reachable_s), *facts.reachable_s);
  if (!facts.met) {
    result.at_most_s = left_s;
    result.why = "no sample shows a thread in user mode while another one with memory in common lived";
  } else if (facts.evidence == EvidenceKind::watched && facts.unseen_s) {
    result.at_most_s = std::min(left_s, *facts.unseen_s + facts.out_of_reach_s);
    result.by_chance_s = std::max(0.0, *result.at_most_s - facts.out_of_reach_s);
    result.why = "watches exclude only more than that";
  } else {
    result.at_most_s = left_s;
    result.why = why_all(facts.evidence) + ", so " + all_counts;
  }
  return result;
}

}  // namespace crosstalk::attribution
