// SPDX-License-Identifier: Apache-2.0
// The objects that communicate: who exchanges them, at which offsets, through which field.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "attribution/estimate/communication.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t max_offsets = 512;  // rows of one object

struct OffsetKey {
  std::uint32_t thread = 0;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  auto operator<=>(const OffsetKey&) const = default;
};
struct OffsetCounts {
  std::uint64_t loads = 0, stores = 0;
};

struct Gathered {
  std::vector<std::uint32_t> contributions;  // indices
  double cost_s = 0, detections = 0;
  PurposeSums costs, sightings;                                  // by purpose
  std::map<std::uint64_t, std::pair<double, double>> by_offset;  // consumer's offset -> cost, detections
  std::map<OffsetKey, OffsetCounts> offsets;
};

/// Accesses seen by samples and traps, onto the objects that communicate; others are left out.
class OffsetGatherer {
 public:
  OffsetGatherer(std::map<std::uint32_t, Gathered>& gathered, DataObjects& objects)
      : gathered_(gathered), objects_(objects) {}

  void add(ThreadId thread, std::uint64_t time_ns, std::uint64_t address, std::uint32_t bytes, OffsetCounts counts) {
    const DataRef ref = objects_.resolve(thread, time_ns, address);
    const auto it = gathered_.find(ref.object);
    if (it != gathered_.end() && counts.loads + counts.stores > 0) {
      OffsetCounts& into = it->second.offsets[{thread.value, ref.offset, bytes}];
      into.loads += counts.loads;
      into.stores += counts.stores;
    }
  }

 private:
  std::map<std::uint32_t, Gathered>& gathered_;
  DataObjects& objects_;
};

void gather_offsets(const CommunicationInputs& inputs, std::map<std::uint32_t, Gathered>& gathered,
                    DataObjects& objects) {
  OffsetGatherer gatherer(gathered, objects);
  for (const SampledAccess& access : inputs.sampled) {
    gatherer.add(access.thread, access.time_ns, access.address, access.width, {access.loads, access.stores});
  }
  for (const OwnershipTimeline& timeline : inputs.timelines) {
    if (timeline.communications.empty()) {
      continue;
    }
    for (const AccessPoint& point : timeline.accesses) {
      if (!point.sampled && !point.bytes.empty()) {  // the opening sample is among the samples already
        const OffsetCounts counts{loads(point.kind) ? 1U : 0U, stores(point.kind) ? 1U : 0U};
        gatherer.add(point.thread, point.time_ns, point.line + point.bytes.first(), point.bytes.count(), counts);
      }
    }
  }
}

std::vector<OffsetRow> offset_rows(const std::map<OffsetKey, OffsetCounts>& offsets) {
  std::vector<OffsetRow> rows;
  rows.reserve(offsets.size());
  for (const auto& [key, counts] : offsets) {
    rows.push_back({key.thread, key.offset, key.bytes, counts.loads, counts.stores});
  }
  if (rows.size() > max_offsets) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.loads + a.stores > b.loads + b.stores; });
    rows.resize(max_offsets);
  }
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return std::tie(a.offset, a.thread, a.bytes) < std::tie(b.offset, b.thread, b.bytes);
  });
  return rows;
}

void name_fields(std::vector<OffsetRow>& rows, std::uint32_t object, DataObjects& objects) {
  for (OffsetRow& row : rows) {
    if (auto found = objects.field_path(object, row.offset)) {
      row.field = std::move(found->path);
      row.type = std::move(found->type);
    }
  }
}

/// Whether two words are each stored by one thread only and loaded by the one that stores the other: the head and the
/// tail of a queue.
bool are_indices(const std::map<OffsetKey, OffsetCounts>& offsets) {
  struct Word {
    std::set<std::uint32_t> storers, loaders;
  };
  std::map<std::uint64_t, Word> words;
  for (const auto& [key, counts] : offsets) {
    Word& word = words[key.offset / 8];
    if (counts.stores > 0) {
      word.storers.insert(key.thread);
    }
    if (counts.loads > 0) {
      word.loaders.insert(key.thread);
    }
  }
  std::set<std::pair<std::uint32_t, std::uint32_t>> directions;  // (who stores, who loads)
  for (const auto& [offset, word] : words) {
    if (word.storers.size() == 1) {
      for (const std::uint32_t loader : word.loaders) {
        directions.insert({*word.storers.begin(), loader});
      }
    }
  }
  return std::any_of(directions.begin(), directions.end(), [&](const auto& direction) {
    return direction.first != direction.second && directions.contains({direction.second, direction.first});
  });
}

/// The field with the most cost (then detections, then the first by name).
std::string busiest_field(std::uint32_t object, const Gathered& gathered, DataObjects& objects) {
  std::map<std::string, std::pair<double, double>> fields;
  for (const auto& [offset, weight] : gathered.by_offset) {
    auto& sums = fields[objects.field(object, offset)];
    sums.first += weight.first;
    sums.second += weight.second;
  }
  fields.erase("");
  const auto best =
      std::max_element(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return best == fields.end() ? std::string{} : best->first;
}

/// Most cost first, then most detections, then by name.
std::vector<std::uint32_t> by_cost(const std::map<std::uint32_t, Gathered>& gathered, const DataObjects& objects) {
  std::vector<std::uint32_t> order;
  order.reserve(gathered.size());
  for (const auto& [id, g] : gathered) {
    order.push_back(id);
  }
  const auto key = [&](std::uint32_t id) {
    const Gathered& g = gathered.at(id);
    return std::tuple<double, double, std::string_view>(-g.cost_s, -g.detections, objects[id].name);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  return order;
}

void cut(std::map<std::uint32_t, Gathered>& gathered, const DataObjects& objects, std::size_t max_rows) {
  const std::vector<std::uint32_t> order = by_cost(gathered, objects);
  for (std::size_t i = max_rows; i < order.size(); ++i) {
    gathered.erase(order[i]);
  }
}

}  // namespace

std::vector<ObjectRow> object_rows(std::span<const LocatedContribution> located, const CommunicationInputs& inputs,
                                   DataObjects& objects) {
  std::map<std::uint32_t, Gathered> gathered;
  for (std::size_t i = 0; i < located.size(); ++i) {
    const LocatedContribution& l = located[i];
    Gathered& g = gathered[l.object.object];
    g.contributions.push_back(static_cast<std::uint32_t>(i));
    g.cost_s += l.cost_s;
    g.detections += l.weight;
    const bool is_true = inputs.contributions[i].seen->true_sharing;
    g.costs.add(l.purpose, is_true, l.cost_s);
    g.sightings.add(l.purpose, is_true, l.weight);
    auto& weight = g.by_offset[l.object.offset];
    weight.first += l.cost_s;
    weight.second += l.weight;
  }
  cut(gathered, objects, inputs.max_rows);
  gather_offsets(inputs, gathered, objects);
  std::vector<ObjectRow> rows;
  for (const std::uint32_t id : by_cost(gathered, objects)) {
    const Gathered& g = gathered[id];
    const DataObject& object = objects[id];
    ObjectRow row;
    row.name = object.name;
    row.kind = object.kind;
    row.size = object.bytes;
    row.field = busiest_field(id, g, objects);
    row.allocated_at = object.allocated_at;
    row.allocation_path = object.allocation_path;
    row.cells = matrix_of(inputs.contributions, g.contributions, inputs.expansion, thread_pair);
    row.offsets = offset_rows(g.offsets);
    name_fields(row.offsets, id, objects);
    row.cost_s = g.cost_s;
    row.sharing = kind_of(g.cost_s > 0 ? g.costs : g.sightings, are_indices(g.offsets));
    const SortAmounts all = totals_of(inputs.contributions, g.contributions, inputs.expansion);
    row.true_sharing = all.true_sharing;
    row.false_sharing = all.false_sharing;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace crosstalk::attribution
