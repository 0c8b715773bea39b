// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/communication.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "attribution/estimate/line_rows.h"
#include "attribution/estimate/object_rows.h"
#include "attribution/objects/block_groups.h"
#include "base/concurrently.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

std::optional<Unseen> unseen_of(const std::optional<UnseenLimits>& limits) {
  if (!limits) {
    return std::nullopt;
  }
  const auto cost = [](const SortLimits& sorts) {
    return UnseenCost{sorts.true_ns / ns_per_s, sorts.false_ns / ns_per_s};
  };
  Unseen result{cost(limits->anywhere), {}};
  for (const ThreadLimits& thread : limits->threads) {
    result.consumers.push_back({thread.thread, cost(thread.anywhere)});
  }
  return result;
}

/// Tells if both accesses lie in one lock or condition variable of the C library, by their fields.
class InsideLocks {
 public:
  explicit InsideLocks(DataObjects& objects) : objects_(objects) {}
  bool one(const SeenCommunication& seen, const DataRef& consumer) {
    const AccessPoint& p = seen.producer;
    const DataRef producer = objects_.resolve(p.thread, p.time_ns, p.line + p.bytes.first());
    if (producer.object != consumer.object || producer.block != consumer.block) {
      return false;
    }
    const auto [known, fresh] = known_.try_emplace({consumer.object, consumer.offset, producer.offset}, false);
    if (fresh) {
      const std::string lock = lock_at(consumer);
      const auto bytes = objects_[consumer.object].bytes;
      known->second = lock == lock_at(producer) && (!lock.empty() || (bytes && *bytes <= largest_lock));
    }
    return known->second;
  }

 private:
  static constexpr std::uint64_t largest_lock = 56;  // pthread_rwlock_t

  /// The path up to the library's hidden fields: "queue.mutex._M_mutex.__data", or "queue.mutex" for unions. Empty: the
  /// object is a lock itself, or its fields are not known.
  std::string lock_at(const DataRef& data) {
    constexpr std::string_view insides = "__data";
    std::string path = objects_.field(data.object, data.offset);
    if (const std::size_t at = path.find(insides); at != std::string::npos) {
      path.resize(at);
    }
    return path;
  }

  DataObjects& objects_;
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, bool> known_;
};

/// Sums each watch's observations of heap blocks. Contributions come by watch.
class BlockSightings {
 public:
  void add(std::uint32_t block, const Contribution& c, double cost) {
    if (c.watch != watch_) {
      flush();
      watch_ = c.watch;
    }
    const auto threads = std::minmax(c.seen->producer.thread.value, c.seen->consumer.thread.value);
    of_watch_[block][threads] += cost;
  }
  [[nodiscard]] std::vector<BlockSighting> finish() && {
    flush();
    return std::move(sightings_);
  }

 private:
  void flush() {
    for (const auto& [block, pairs] : of_watch_) {
      const auto most = std::max_element(pairs.begin(), pairs.end(),
                                         [](const auto& a, const auto& b) { return a.second < b.second; });
      const double cost = std::accumulate(pairs.begin(), pairs.end(), 0.0,
                                          [](double sum, const auto& pair) { return sum + pair.second; });
      sightings_.push_back({block, most->first, cost});
    }
    of_watch_.clear();
  }

  std::uint32_t watch_ = UINT32_MAX;
  std::map<std::uint32_t, std::map<std::pair<std::uint32_t, std::uint32_t>, double>> of_watch_;
  std::vector<BlockSighting> sightings_;
};

/// Makes objects of their own from blocks of one allocation site that behave differently.
void tell_apart(std::vector<BlockSighting> sightings, DataObjects& objects) {
  std::map<std::uint32_t, std::vector<std::uint32_t>> sites;  // object -> its blocks
  std::map<std::uint32_t, std::vector<BlockSighting>> seen;
  std::vector<std::uint32_t> place(objects.blocks().size());  // of a block, among those of its object
  for (std::uint32_t block = 0; block < place.size(); ++block) {
    auto& blocks = sites[objects.blocks()[block].object];
    place[block] = static_cast<std::uint32_t>(blocks.size());
    blocks.push_back(block);
  }
  for (BlockSighting& each : sightings) {
    const std::uint32_t object = objects.blocks()[each.block].object;
    each.block = place[each.block];
    seen[object].push_back(each);
  }
  for (const auto& [object, blocks] : sites) {
    objects.set_blocks(object, blocks.size());
    auto groups = alike_blocks(static_cast<std::uint32_t>(blocks.size()), seen[object]);
    if (groups.size() > 1) {
      for (auto& group : groups) {
        std::transform(group.begin(), group.end(), group.begin(),
                       [&, &of_site = blocks](std::uint32_t n) { return of_site[n]; });
      }
      objects.tell_apart(object, groups);
    }
  }
}

}  // namespace

void CommunicationFiler::locate(std::span<const Contribution> contributions, const Expansion& expansion) {
  located_.reserve(contributions.size());
  for (const Contribution& c : contributions) {
    sites_.learn(c.seen->producer);
    sites_.learn(c.seen->consumer);
  }
  BlockSightings blocks;
  InsideLocks inside(objects_);
  std::vector<std::uint32_t> block_of;
  block_of.reserve(contributions.size());
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
    l.inside_one = !c.seen->true_sharing && (l.purpose == Purpose::lock || l.purpose == Purpose::condition) &&
                   inside.one(*c.seen, data);
    l.cost_s = cost_s(c, expansion.strata);
    l.weight = c.seen->weight;
    located_.push_back(l);
    block_of.push_back(data.block);
    if (data.block != DataRef::no_block) {
      blocks.add(data.block, c, l.cost_s > 0 ? l.cost_s : l.weight);
    }
  }
  tell_apart(std::move(blocks).finish(), objects_);
  for (std::size_t i = 0; i < located_.size(); ++i) {
    if (block_of[i] != DataRef::no_block) {
      located_[i].object = objects_.blocks()[block_of[i]].object;
    }
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
  concurrently(add_up, [&] {  // questions about code and data stay on this thread
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
