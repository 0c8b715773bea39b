// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/cost_attribution.h"

#include <algorithm>
#include <map>
#include <optional>

#include "attribution/timeline/ownership_timeline.h"

namespace crosstalk::attribution {
namespace {

/// Keeps a communication and charges `cost` of the weight of the watch's sample to it.
void append(const Evidence& evidence, std::uint32_t watch, const SeenCommunication& seen, double cost, Estimate& out) {
  out.seen.push_back(seen);
  out.contributions.push_back({&out.seen.back(), watch, evidence.stratum, evidence.weight, cost});
}

/// 1 / the probability that the access could have been seen.
double weight_of(const Evidence& evidence, const AccessPoint& point) {
  return point.weight() * evidence.duration_weight(point.time_ns);
}

/// By thread other than the sampled one: its first access that was certain to be seen, else its first.
std::map<std::uint32_t, const AccessPoint*> observers(const Evidence& evidence) {
  std::map<std::uint32_t, const AccessPoint*> result;
  for (const AccessPoint& point : evidence.accesses) {
    if (point.thread == evidence.thread) {
      continue;
    }
    const AccessPoint*& first = result[point.thread.value];
    if (first == nullptr || (first->weight() > 1 && point.weight() == 1)) {
      first = &point;
    }
  }
  return result;
}

/// The next access of another thread that `wanted` accepts: in that thread's run the first one that was certain to be
/// seen, else its first. nullptr: there is none.
template <class Wanted>
const AccessPoint* next_partner(const Evidence& evidence, Wanted wanted) {
  const AccessPoint* found = nullptr;
  for (const AccessPoint& point : evidence.accesses) {
    if (point.thread == evidence.thread || !wanted(point)) {
      continue;
    }
    if (found != nullptr && point.thread != found->thread) {
      break;
    }
    if (found == nullptr || (found->weight() > 1 && point.weight() == 1)) {
      found = &point;
    }
  }
  return found;
}

/// True if the sample was a store to a line to which only its thread stores. Its time then went into taking the line
/// from its readers. For the readers this is communication, but the time is theirs.
bool only_invalidates(const Evidence& evidence) {
  return evidence.sampled == AccessKind::store && evidence.interrupted.empty() &&
         std::all_of(evidence.communications.begin(), evidence.communications.end(),
                     [&](const SeenCommunication& seen) { return seen.producer.thread == evidence.thread; });
}

bool stored_by_another(const Evidence& evidence, const AccessPoint& point) {
  return point.thread != evidence.thread && stores(point.kind);
}

/// 1 / the probability that a thread that stores to the line was armed.
double storer_weight(const Evidence& evidence) {
  const double armed = evidence.arming.chance(evidence.storers);
  return armed > 0 ? 1 / armed : 1;
}

/// Adds the communication of the sampled thread's next access, if the watch ended before it: after another thread's
/// store it is certain to be one.
void expect_successor(const Evidence& evidence, std::uint32_t watch, Estimate& out) {
  const auto last = std::find_if(evidence.accesses.rbegin(), evidence.accesses.rend(),
                                 [&](const AccessPoint& point) { return stored_by_another(evidence, point); });
  if (last != evidence.accesses.rend() && evidence.watch != nullptr) {
    AccessPoint sampled = sampled_access(*evidence.watch);
    sampled.sampled = true;
    append(evidence, watch, {*last, sampled, is_true_sharing(*last, sampled), last->weight()},
           evidence.weight * storer_weight(evidence) * last->weight(), out);
  }
}

/// charge_communications() for a sample that counts accesses.
void charge_successor(const Evidence& evidence, std::uint32_t watch, Estimate& out) {
  const auto own = own_return(evidence);
  const bool taken = std::any_of(evidence.accesses.begin(), own,
                                 [&](const AccessPoint& point) { return stored_by_another(evidence, point); });
  std::optional<std::uint64_t> at_ns;  // of the consuming access
  for (const SeenCommunication& seen : evidence.communications) {
    if (seen.consumer.thread == evidence.thread) {
      at_ns = std::min(at_ns.value_or(UINT64_MAX), seen.consumer.time_ns);
    }
  }
  for (const SeenCommunication& seen : evidence.communications) {
    const bool successor =
        seen.consumer.thread == evidence.thread && seen.consumer.time_ns == at_ns && (taken || seen.expected());
    const double cost = successor ? evidence.weight * storer_weight(evidence) * seen.weight : 0;
    out.contributions.push_back({&seen, watch, evidence.stratum, evidence.weight, cost});
  }
  if (own == evidence.accesses.end() && !at_ns && evidence.interrupted.empty()) {
    expect_successor(evidence, watch, out);
  }
}

}  // namespace

std::span<const AccessPoint>::iterator own_return(const Evidence& evidence) {
  return std::find_if(evidence.accesses.begin(), evidence.accesses.end(),
                      [&](const AccessPoint& point) { return point.thread == evidence.thread && !point.sampled; });
}

void charge_communications(const Evidence& evidence, std::uint32_t watch, Estimate& out) {
  if (is_count(evidence.unit)) {
    charge_successor(evidence, watch, out);
    return;
  }
  const auto consumed = [&](const SeenCommunication& seen) { return seen.consumer.thread == evidence.thread; };
  const bool any_own = std::any_of(evidence.communications.begin(), evidence.communications.end(), consumed) ||
                       std::any_of(evidence.interrupted.begin(), evidence.interrupted.end(), consumed);
  if (!any_own && only_invalidates(evidence)) {
    for (const SeenCommunication& seen : evidence.communications) {
      out.contributions.push_back({&seen, watch, evidence.stratum, evidence.weight, 0});
    }
    return;
  }
  // If not all threads were armed, a watch that armed the line's users also represents those that did not.
  const double armed = evidence.arming.chance(any_own ? evidence.storers : evidence.visitors);
  const double unarmed_weight = armed > 0 ? 1 / armed : 1;
  double total = 0;
  double least = 0;  // weight of what was easiest to see
  for (const auto& all : {evidence.communications, evidence.interrupted}) {
    for (const SeenCommunication& seen : all) {
      if (!any_own || consumed(seen)) {
        total += seen.weight;
        const double whole = seen.weight / seen.share;
        least = least == 0 ? whole : std::min(least, whole);
      }
    }
  }
  for (const SeenCommunication& seen : evidence.communications) {
    const bool charged = (!any_own || consumed(seen)) && total > 0;
    const double cost = charged ? evidence.weight * unarmed_weight * least * seen.weight / total : 0;
    out.contributions.push_back({&seen, watch, evidence.stratum, evidence.weight, cost});
  }
}

void charge_board(const Evidence& evidence, std::uint32_t watch, Estimate& out) {
  if (evidence.watch == nullptr) {
    return;
  }
  const AccessPoint sampled = sampled_access(*evidence.watch);
  for (const auto& [thread, point] : observers(evidence)) {
    append(evidence, watch, {sampled, *point, is_true_sharing(sampled, *point), 1}, evidence.weight, out);
  }
}

void charge_board_weighted(const Evidence& evidence, std::uint32_t watch, Estimate& out) {
  if (evidence.watch == nullptr) {
    return;
  }
  const AccessPoint sampled = sampled_access(*evidence.watch);
  const double others = evidence.watch->threads > 1 ? evidence.watch->threads - 1 : 1;
  const double armed = std::clamp(static_cast<double>(evidence.watch->armed), 1.0, others);
  for (const auto& [thread, point] : observers(evidence)) {
    const double weight = weight_of(evidence, *point) * others / armed;
    append(evidence, watch, {sampled, *point, is_true_sharing(sampled, *point), weight}, evidence.weight * weight, out);
  }
}

void charge_next_access(const Evidence& evidence, std::uint32_t watch, Estimate& out) {
  if (evidence.watch == nullptr) {
    return;
  }
  if (const AccessPoint* next = next_partner(evidence, [](const AccessPoint&) { return true; })) {
    const AccessPoint sampled = sampled_access(*evidence.watch);
    const double weight = weight_of(evidence, *next);
    append(evidence, watch, {sampled, *next, is_true_sharing(sampled, *next), weight}, evidence.weight * weight, out);
  }
}

void charge_next_store(const Evidence& evidence, std::uint32_t watch, Estimate& out) {
  if (evidence.watch == nullptr) {
    return;
  }
  const auto stored = [](const AccessPoint& point) { return stores(point.kind); };
  if (const AccessPoint* next = next_partner(evidence, stored)) {
    const AccessPoint sampled = sampled_access(*evidence.watch);
    const double weight = weight_of(evidence, *next);
    append(evidence, watch, {*next, sampled, is_true_sharing(*next, sampled), weight}, evidence.weight * weight, out);
  }
}

}  // namespace crosstalk::attribution
