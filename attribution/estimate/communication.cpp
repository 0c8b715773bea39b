// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/communication.h"

#include <algorithm>
#include <array>
#include <map>

namespace crosstalk::attribution {
namespace {

constexpr std::size_t max_call_paths = 10;

struct Row {                                 // a line in one role, or a pair of lines on an object, as it is gathered
  std::vector<std::uint32_t> contributions;  // indices
  double cost_s = 0, detections = 0;
  void add(std::size_t index, const LocatedContribution& l) {
    contributions.push_back(static_cast<std::uint32_t>(index));
    cost_s += l.cost_s;
    detections += l.weight;
  }
};
template <class Row>
void add_totals(Row& row, const SortAmounts& all) {
  row.true_sharing = all.true_sharing;
  row.false_sharing = all.false_sharing;
}
using Located = std::span<const LocatedContribution>;

/// Call paths of one end of a row's communications, heaviest first; weights are shares of those with a known stack.
std::vector<CallPath> call_paths(const Row& row, Role role, Located located, const CommunicationInputs& inputs,
                                 const ProgramView& view, const StackTable& stacks) {
  using Key = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  struct Group {
    double weight = 0;
    const AccessPoint* point = nullptr;
  };
  std::map<Key, Group> groups;
  double total = 0;
  for (const std::uint32_t index : row.contributions) {
    const SeenCommunication& seen = *inputs.contributions[index].seen;
    const AccessPoint& point = role == Role::producer ? seen.producer : seen.consumer;
    const auto addresses = stacks.addresses(point.stack);
    if (addresses.empty()) {
      continue;
    }
    Key key{{view.moment(point.thread, 0).process.value, point.instruction}};
    for (const std::uint64_t address : addresses.subspan(1)) {
      key.emplace_back(0, address);
    }
    const double weight = row.cost_s > 0 ? located[index].cost_s : located[index].weight;
    Group& group = groups[key];
    group.weight += weight;
    group.point = &point;
    total += weight;
  }
  std::vector<CallPath> paths;
  for (const auto& [key, group] : groups) {
    const Moment moment = view.moment(group.point->thread, group.point->time_ns);
    paths.push_back({call_path(view, moment, group.point->instruction, stacks.addresses(group.point->stack)),
                     total > 0 ? group.weight / total : 0});
  }
  std::stable_sort(paths.begin(), paths.end(), [](const auto& a, const auto& b) { return a.weight > b.weight; });
  if (paths.size() > max_call_paths) {
    paths.resize(max_call_paths);
  }
  return paths;
}

/// The groups with the most cost, then the most detections, then by name; only they are worth the rest of the work.
template <class Key>
std::vector<const std::pair<const Key, Row>*> costliest(const std::map<Key, Row>& groups, std::size_t max_rows) {
  std::vector<const std::pair<const Key, Row>*> order;
  order.reserve(groups.size());
  for (const auto& group : groups) {
    order.push_back(&group);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.cost_s, a->second.detections) > std::pair(b->second.cost_s, b->second.detections);
  });
  if (order.size() > max_rows) {
    order.resize(max_rows);
  }
  return order;
}

std::vector<LocatedContribution> locate(const CommunicationInputs& inputs, SiteTable& sites, DataObjects& objects) {
  std::vector<LocatedContribution> located;
  located.reserve(inputs.contributions.size());
  for (const Contribution& c : inputs.contributions) {
    sites.learn(c.seen->producer);
    sites.learn(c.seen->consumer);
  }
  for (const Contribution& c : inputs.contributions) {
    const AccessPoint& consumer = c.seen->consumer;
    LocatedContribution l;
    l.producer_site = sites.of(c.seen->producer).site;
    const Spot spot = sites.of(consumer);
    l.consumer_site = spot.site;
    l.purpose = spot.purpose;
    l.object = objects.resolve(consumer.thread, consumer.time_ns, consumer.line + consumer.bytes.first());
    l.cost_s = cost_s(c, inputs.expansion.strata);
    l.weight = c.seen->weight;
    located.push_back(l);
  }
  return located;
}

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

std::vector<LineRow> line_rows(std::span<const LocatedContribution> located, const SiteTable& sites,
                               const CommunicationInputs& inputs, const ProgramView& view, const StackTable& stacks) {
  const std::vector<std::uint32_t> rank = sites.ranks();
  std::map<std::pair<std::uint32_t, Role>, Row> groups;
  for (std::size_t i = 0; i < located.size(); ++i) {
    groups[{rank[located[i].consumer_site], Role::consumer}].add(i, located[i]);
    groups[{rank[located[i].producer_site], Role::producer}].add(i, located[i]);
  }
  std::vector<LineRow> rows;
  for (const auto* entry : costliest(groups, inputs.max_rows)) {
    const auto& [key, group] = *entry;
    const LocatedContribution& any = located[group.contributions.front()];
    LineRow row;
    row.role = key.second;
    const CodeSite& site = sites[row.role == Role::consumer ? any.consumer_site : any.producer_site];
    row.file = site.file;
    row.line = site.line;
    row.function = site.function;
    row.cells = matrix_of(inputs.contributions, group.contributions, inputs.expansion, thread_pair);
    row.through = sites.through(row.role == Role::consumer ? any.consumer_site : any.producer_site);
    row.cost_s = group.cost_s;
    add_totals(row, totals_of(inputs.contributions, group.contributions, inputs.expansion));
    row.call_paths = call_paths(group, row.role, located, inputs, view, stacks);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LinePair> line_pair_rows(std::span<const LocatedContribution> located, const SiteTable& sites,
                                     const CommunicationInputs& inputs, const DataObjects& objects) {
  const std::vector<std::uint32_t> rank = sites.ranks();
  const std::vector<std::uint32_t> object_rank = objects.name_ranks();
  std::map<std::array<std::uint32_t, 3>, Row> groups;
  for (std::size_t i = 0; i < located.size(); ++i) {
    const LocatedContribution& l = located[i];
    groups[{rank[l.producer_site], rank[l.consumer_site], object_rank[l.object.object]}].add(i, l);
  }
  std::vector<LinePair> rows;
  for (const auto* entry : costliest(groups, inputs.max_rows)) {
    const Row& group = entry->second;
    const LocatedContribution& any = located[group.contributions.front()];
    const CodeSite& producer = sites[any.producer_site];
    const CodeSite& consumer = sites[any.consumer_site];
    LinePair row;
    row.producer_file = producer.file;
    row.producer_line = producer.line;
    row.producer_function = producer.function;
    row.consumer_file = consumer.file;
    row.consumer_line = consumer.line;
    row.consumer_function = consumer.function;
    row.object = objects[any.object.object].name;
    row.cells = matrix_of(inputs.contributions, group.contributions, inputs.expansion, thread_pair);
    row.producer_through = sites.through(any.producer_site);
    row.consumer_through = sites.through(any.consumer_site);
    row.cost_s = group.cost_s;
    add_totals(row, totals_of(inputs.contributions, group.contributions, inputs.expansion));
    rows.push_back(std::move(row));
  }
  return rows;
}

Communication communication_of(const CommunicationInputs& inputs, const ProgramView& view, const StackTable& stacks,
                               DataObjects& objects) {
  SiteTable sites(view, stacks);
  const std::vector<LocatedContribution> located = locate(inputs, sites, objects);
  Communication result;
  result.cells = matrix_of(inputs.contributions, inputs.expansion, thread_pair);
  result.cores = matrix_of(inputs.contributions, inputs.expansion, core_pair);
  add_totals(result, totals_of(inputs.contributions, inputs.expansion));
  result.unseen = unseen_of(inputs.expansion.unseen);
  result.invalidations = invalidation_matrix(inputs.timelines);
  result.lines = line_rows(located, sites, inputs, view, stacks);
  result.line_pairs = line_pair_rows(located, sites, inputs, objects);
  result.objects = object_rows(located, inputs, objects);
  return result;
}

}  // namespace crosstalk::attribution
