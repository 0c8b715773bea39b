// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/object_rows.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace crosstalk::attribution {
namespace {

constexpr std::size_t max_offsets = 512;  // rows of one object

using Offsets = std::map<ObjectOffset, OffsetCounts>;

std::vector<OffsetRow> offset_rows(const Offsets& offsets) {
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
      row.field_begin = found->offset;
    }
  }
}

/// True for a library's lock and the like, whose words a user does not distinguish.
bool is_synchronisation(Purpose purpose) {
  return purpose == Purpose::lock || purpose == Purpose::condition || purpose == Purpose::barrier;
}

/// True if there are two words, each stored by one thread only and loaded by the thread that stores the other: the head
/// and the tail of a queue.
bool are_indices(const Offsets& offsets) {
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

using Weight = std::pair<double, double>;  // cost, detections

double amount(const Weight& weight, bool by_cost) { return by_cost ? weight.first : weight.second; }

/// The pieces of "items[5].lines[2].value" between its indices, and the indices.
struct IndexedPath {
  std::vector<std::string> pieces;  // one more than indices
  std::vector<std::string> indices;
  [[nodiscard]] std::string text() const {
    std::string result = pieces.front();
    for (std::size_t i = 0; i < indices.size(); ++i) {
      result.append("[").append(indices[i]).append("]").append(pieces[i + 1]);
    }
    return result;
  }
};

IndexedPath split(const std::string& path) {
  IndexedPath result;
  std::size_t at = 0;
  for (std::size_t open = path.find('['); open != std::string::npos; open = path.find('[', at)) {
    const std::size_t close = std::min(path.find(']', open), path.size() - 1);
    result.pieces.push_back(path.substr(at, open - at));
    result.indices.push_back(path.substr(open + 1, close - open - 1));
    at = close + 1;
  }
  result.pieces.push_back(path.substr(at));
  return result;
}

using FieldWeights = std::map<std::string, Weight>;
const std::string any_index = "*";

/// The name of similarly used array elements: that of an outstanding one, or "items[*].lines[*].value" with the indices
/// that at least half of the amount has.
std::string name_of_elements(const FieldWeights& elements, bool by_cost) {
  constexpr double stands_out = 0.25;
  const auto most = std::max_element(elements.begin(), elements.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  double all = 0;
  IndexedPath name = split(most->first);
  std::vector<std::map<std::string, double>> by_index(name.indices.size());
  for (const auto& [field, weight] : elements) {
    const IndexedPath path = split(field);
    all += amount(weight, by_cost);
    for (std::size_t i = 0; i < path.indices.size(); ++i) {
      by_index[i][path.indices[i]] += amount(weight, by_cost);
    }
  }
  if (amount(most->second, by_cost) >= stands_out * all) {
    return most->first;
  }
  for (std::size_t i = 0; i < name.indices.size(); ++i) {
    const auto best = std::max_element(by_index[i].begin(), by_index[i].end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    name.indices[i] = best->second >= all / 2 ? best->first : any_index;
  }
  return name.text();
}

/// The field with the most cost (then detections, then the first by name). Joins elements of an array.
std::string busiest_field(std::uint32_t object, const std::map<std::uint64_t, Weight>& by_offset,
                          DataObjects& objects) {
  struct Alike {
    Weight sum;
    FieldWeights elements;
  };
  std::map<std::string, Alike> shapes;
  for (const auto& [offset, weight] : by_offset) {
    const std::string field = objects.field(object, offset);
    IndexedPath shape = split(field);
    std::fill(shape.indices.begin(), shape.indices.end(), any_index);
    Alike& alike = shapes[shape.text()];
    for (Weight* sum : {&alike.sum, &alike.elements[field]}) {
      sum->first += weight.first;
      sum->second += weight.second;
    }
  }
  shapes.erase("");
  const auto best = std::max_element(shapes.begin(), shapes.end(),
                                     [](const auto& a, const auto& b) { return a.second.sum < b.second.sum; });
  return best == shapes.end() ? std::string{} : name_of_elements(best->second.elements, best->second.sum.first > 0);
}

/// The objects by name.
std::vector<std::uint32_t> in_order(const DataObjects& objects) {
  std::vector<std::uint32_t> order(objects.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return objects[a].name < objects[b].name; });
  return order;
}

}  // namespace

ObjectTable::ObjectTable(std::span<const LocatedContribution> located, const CommunicationInputs& inputs,
                         DataObjects& objects)
    : inputs_(inputs), objects_(objects), table_(objects.size()), gathered_(objects.size()) {
  for (std::size_t i = 0; i < located.size(); ++i) {
    const LocatedContribution& l = located[i];
    table_.add(l.object, i, l.cost_s, l.weight);
    Gathered& g = gathered_[l.object];
    // A user cannot lay out the words of a lock: sharing any of them is sharing the lock.
    const bool is_true = inputs.contributions[i].seen->true_sharing || l.inside_one;
    g.costs.add(l.purpose, is_true, l.cost_s);
    g.sightings.add(l.purpose, is_true, l.weight);
    if (is_synchronisation(l.purpose)) {
      g.sync_costs[l.offset].add(l.purpose, is_true, l.cost_s);
      g.sync_sightings[l.offset].add(l.purpose, is_true, l.weight);
    }
    auto& weight = g.by_offset[l.offset];
    weight.first += l.cost_s;
    weight.second += l.weight;
  }
  table_.choose(in_order(objects), inputs.max_rows, inputs.expansion);
}

void ObjectTable::find_offsets() {
  for (const SampledAccess& access : inputs_.sampled) {
    add_offset(access.thread, access.time_ns, access.address, access.width, {access.loads, access.stores});
  }
  for (const OwnershipTimeline& timeline : inputs_.timelines) {
    if (timeline.communications.empty()) {
      continue;
    }
    for (const AccessPoint& point : timeline.accesses) {
      if (!point.sampled && !point.bytes.empty()) {  // the opening sample is among the samples already
        const OffsetCounts counts{loads(point.kind) ? 1U : 0U, stores(point.kind) ? 1U : 0U};
        add_offset(point.thread, point.time_ns, point.line + point.bytes.first(), point.bytes.count(), counts);
      }
    }
  }
}

/// Adds an access by samples or traps to its object, if that is a row.
void ObjectTable::add_offset(ThreadId thread, std::uint64_t time_ns, std::uint64_t address, std::uint32_t bytes,
                             OffsetCounts counts) {
  const DataRef ref = objects_.resolve(thread, time_ns, address);
  // Objects that are found now for the first time do not communicate.
  const bool is_row = ref.object < gathered_.size() && table_.row_of(ref.object) != RowTable::none;
  if (is_row && counts.loads + counts.stores > 0) {
    OffsetCounts& into = gathered_[ref.object].offsets[{thread.value, ref.offset, bytes}];
    into.loads += counts.loads;
    into.stores += counts.stores;
  }
}

std::vector<SyncField> ObjectTable::sync_fields_of(std::uint32_t object, bool by_cost) {
  const Gathered& g = gathered_[object];
  std::map<std::string, PurposeSums> fields;
  for (const auto& [offset, sums] : by_cost ? g.sync_costs : g.sync_sightings) {
    fields[objects_.field(object, offset)].add(sums);
  }
  fields.erase("");
  std::vector<SyncField> result;
  std::transform(fields.begin(), fields.end(), std::back_inserter(result), [by_cost](const auto& field) {
    return SyncField{field.first, kind_of(field.second, false).kind, by_cost ? field.second.sum() : 0};
  });
  std::stable_sort(result.begin(), result.end(),
                   [](const SyncField& a, const SyncField& b) { return a.cost_s > b.cost_s; });
  return result.size() < 2 ? std::vector<SyncField>() : result;
}

std::vector<ObjectRow> ObjectTable::finish() {
  std::vector<ObjectRow> rows(table_.rows());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::uint32_t id = table_.group_of(i);
    const Gathered& g = gathered_[id];
    const Offsets offsets(g.offsets.begin(), g.offsets.end());
    const DataObject& object = objects_[id];
    ObjectRow& row = rows[i];
    row.name = object.name;
    row.place = object.place;
    row.site = object.site;
    row.blocks = object.blocks;
    row.kind = object.kind;
    row.size = object.bytes;
    row.field = busiest_field(id, {g.by_offset.begin(), g.by_offset.end()}, objects_);
    row.allocated_at = object.allocated_at;
    row.allocation_path = object.allocation_path;
    row.offsets = offset_rows(offsets);
    name_fields(row.offsets, id, objects_);
    row.cost_s = table_[i].cost_s;
    row.sharing = kind_of(row.cost_s > 0 ? g.costs : g.sightings, are_indices(offsets));
    row.sync_fields = sync_fields_of(id, row.cost_s > 0);
    table_.fill_amounts(i, row);
  }
  return rows;
}

}  // namespace crosstalk::attribution
