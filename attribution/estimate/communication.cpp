// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/communication.h"

#include <algorithm>

#include "attribution/estimate/line_rows.h"
#include "attribution/objects/object_rows.h"
#include "base/concurrently.h"

namespace crosstalk::attribution {
namespace {

std::optional<Unseen> unseen_of(const std::optional<UnseenLimits>& limits) {
  if (!limits) {
    return std::nullopt;
  }
  constexpr double ns_per_s = 1e9;
  const auto cost = [](const SortLimits& sorts) {
    return UnseenCost{sorts.true_ns / ns_per_s, sorts.false_ns / ns_per_s};
  };
  Unseen result{cost(limits->anywhere), {}};
  for (const ThreadLimits& thread : limits->threads) {
    result.consumers.push_back({thread.thread, cost(thread.anywhere)});
  }
  return result;
}

}  // namespace

void CommunicationFiler::locate(std::span<const Contribution> contributions, const Expansion& expansion) {
  located_.reserve(contributions.size());
  for (const Contribution& c : contributions) {
    sites_.learn(c.seen->producer);
    sites_.learn(c.seen->consumer);
  }
  for (const Contribution& c : contributions) {
    const AccessPoint& consumer = c.seen->consumer;
    LocatedContribution l;
    l.producer_site = sites_.of(c.seen->producer).site;
    const Spot spot = sites_.of(consumer);
    l.consumer_site = spot.site;
    l.purpose = spot.purpose;
    const DataRef data = objects_.resolve(consumer.thread, consumer.time_ns, consumer.line + consumer.bytes.first());
    l.object = data.object;
    l.offset = data.offset;
    l.cost_s = cost_s(c, expansion.strata);
    l.weight = c.seen->weight;
    located_.push_back(l);
  }
}

Communication CommunicationFiler::file(const CommunicationInputs& inputs) {
  LineTable lines(located_, sites_, inputs);
  LinePairTable pairs(located_, sites_, inputs, objects_);
  ObjectTable by_object(located_, inputs, objects_);
  PairAmounts by_thread(inputs.expansion, thread_pair);
  PairAmounts by_core(inputs.expansion, core_pair);
  Communication result;
  const auto add_up = [&] {
    for (std::size_t i = 0; i < located_.size(); ++i) {
      const Summand summand = summand_of(inputs.contributions[i], inputs.expansion, located_[i].cost_s);
      by_thread.add(summand);
      by_core.add(summand);
      lines.add_amounts(located_[i], summand);
      pairs.add_amounts(i, summand);
      by_object.add_amounts(located_[i], summand);
    }
    result.invalidations = invalidation_matrix(inputs.timelines);
  };
  concurrently(add_up, [&] {  // what asks for code and data stays on this thread
    lines.find_call_paths(view_, stacks_);
    by_object.find_offsets();
  });
  PairAmounts::Result whole = by_thread.finish();
  result.cells = std::move(whole.cells);
  result.true_sharing = std::move(whole.true_sharing);
  result.false_sharing = std::move(whole.false_sharing);
  result.cores = by_core.finish().cells;
  result.unseen = unseen_of(inputs.expansion.unseen);
  result.lines = lines.finish();
  result.line_pairs = pairs.finish();
  result.objects = by_object.finish();
  return result;
}

Communication communication_of(const CommunicationInputs& inputs, const ProgramView& view, const StackTable& stacks,
                               DataObjects& objects) {
  CommunicationFiler filer(view, stacks, objects);
  filer.locate(inputs.contributions, inputs.expansion);
  return filer.file(inputs);
}

}  // namespace crosstalk::attribution
