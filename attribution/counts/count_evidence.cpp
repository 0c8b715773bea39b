// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/count_evidence.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <set>

namespace crosstalk::attribution {
namespace {

constexpr std::uint64_t stray = 20;  // a line with so many times fewer samples than the mean, and no communication

/// One consumer's accesses at some of its instructions.
struct Pool {
  std::set<std::uint64_t> instructions;
  LineSamples lines;
  std::set<std::uint64_t> exchanged;
  std::vector<SeenAt> seen;
  SiteSamples sums;
};

using Sites = std::map<ConsumerSite, Pool>;

void add_time(SiteSamples& into, std::uint64_t samples, std::uint64_t first_ns, std::uint64_t last_ns) {
  if (samples > 0) {
    into.first_ns = into.samples == 0 ? first_ns : std::min(into.first_ns, first_ns);
    into.last_ns = std::max(into.last_ns, last_ns);
    into.samples += samples;
  }
}

/// Adds watches on the consumer's lines that other threads' samples opened.
void add_found_by_others(Pool& pool, std::uint32_t consumer, std::span<const profile::WatchRow> watches) {
  std::uint32_t last = UINT32_MAX;
  for (const SeenAt& at : pool.seen) {
    if (at.watch != last && watches[at.watch].thread.value != consumer) {
      ++pool.lines[at.seen->consumer.line];
    }
    last = at.watch;
  }
  for (const std::uint64_t line : pool.exchanged) {
    pool.lines.try_emplace(line, 1);
  }
}

Sites sites_of(std::span<const profile::WatchRow> watches, std::span<const OwnershipTimeline> timelines,
               const ConsumerSamples& samples) {
  Sites sites;
  for (const auto& [site, own] : samples.sites()) {
    sites[site].seen.reserve(own.communications);
  }
  auto latest = sites.end();
  for (std::uint32_t w = 0; w < timelines.size(); ++w) {
    for (const SeenCommunication& seen : timelines[w].communications) {
      if (seen.expected()) {
        continue;
      }
      const ConsumerSite site{seen.consumer.thread.value, seen.consumer.instruction};
      if (latest == sites.end() || latest->first != site) {
        latest = sites.try_emplace(site).first;
      }
      Pool& pool = latest->second;
      if (pool.seen.empty()) {
        pool.instructions.insert(seen.consumer.instruction);
      }
      // The line's address in the consumer: processes map memory at different addresses.
      if (pool.seen.empty() || pool.seen.back().seen->consumer.line != seen.consumer.line) {
        pool.exchanged.insert(seen.consumer.line);
      }
      pool.seen.push_back({w, &seen});
    }
  }
  std::erase_if(sites, [](const auto& site) { return site.second.seen.empty(); });
  for (auto& [site, pool] : sites) {
    if (const auto found = samples.sites().find(site); found != samples.sites().end()) {
      const SiteSamples& own = found->second;
      for (const auto& [line, count] : own.lines) {
        pool.lines[line] += count;
      }
      add_time(pool.sums, own.samples, own.first_ns, own.last_ns);
    }
    add_found_by_others(pool, site.thread, watches);
  }
  return sites;
}

/// Leaves out lines of misattributed samples: a clock's interrupt is sometimes blamed on the wrong access.
void drop_strays(Pool& pool) {
  std::uint64_t all = 0;
  for (const auto& [line, count] : pool.lines) {
    all += count;
  }
  const std::uint64_t lines = pool.lines.size();
  std::erase_if(pool.lines, [&](const auto& entry) {
    return entry.second * stray * lines < all && !pool.exchanged.contains(entry.first);
  });
}

void join(Pool& into, Pool& from) {
  for (const auto& [line, count] : from.lines) {
    into.lines[line] += count;
  }
  into.exchanged.merge(from.exchanged);
  into.instructions.merge(from.instructions);
  into.seen.insert(into.seen.end(), from.seen.begin(), from.seen.end());
  add_time(into.sums, from.sums.samples, from.sums.first_ns, from.sums.last_ns);
  from = Pool{};
}

/// Joins instructions of one thread that access the same or interleaved lines, so that each line is counted once.
std::vector<Pool> joined(std::vector<Pool> pools) {
  std::sort(pools.begin(), pools.end(),
            [](const Pool& a, const Pool& b) { return a.lines.begin()->first < b.lines.begin()->first; });
  std::vector<std::size_t> leader(pools.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](std::size_t i) {
    while (leader[i] != i) {
      i = leader[i] = leader[leader[i]];
    }
    return i;
  };
  std::size_t widest = 0;  // of those so far, the one that reaches furthest
  for (std::size_t i = 1; i < pools.size(); ++i) {
    if (pools[i].lines.begin()->first <= pools[widest].lines.rbegin()->first) {
      leader[find(i)] = find(widest);
    }
    widest = pools[i].lines.rbegin()->first > pools[widest].lines.rbegin()->first ? i : widest;
  }
  for (std::size_t i = 0; i < pools.size(); ++i) {
    if (find(i) != i) {
      join(pools[find(i)], pools[i]);
    }
  }
  std::erase_if(pools, [](const Pool& pool) { return pool.seen.empty(); });
  return pools;
}

void split_by_cluster(std::uint32_t consumer, Pool pool, std::vector<ExchangeGroup>& groups) {
  const std::vector<LineCluster> clusters = line_clusters(pool.lines);
  for (const LineCluster& cluster : clusters) {
    ExchangeGroup group{consumer,          pool.instructions,  cluster,          {}, {},
                        pool.sums.samples, pool.sums.first_ns, pool.sums.last_ns};
    const auto outside = [&](const SeenAt& seen) { return !cluster.holds(seen.seen->consumer.line); };
    if (clusters.size() == 1) {
      group.seen = std::move(pool.seen);
      std::erase_if(group.seen, outside);
    } else {
      std::remove_copy_if(pool.seen.begin(), pool.seen.end(), std::back_inserter(group.seen), outside);
    }
    for (const SeenAt& seen : group.seen) {
      if (group.watches.empty() || group.watches.back() != seen.watch) {
        group.watches.push_back(seen.watch);
      }
    }
    std::sort(group.watches.begin(), group.watches.end());
    group.watches.erase(std::unique(group.watches.begin(), group.watches.end()), group.watches.end());
    if (!group.seen.empty()) {
      groups.push_back(std::move(group));
    }
  }
}

/// Groups with one distance and the same instructions, of any threads, determine their sweeps' length together.
void share_lengths(std::vector<ExchangeGroup>& groups) {
  std::map<std::pair<std::uint64_t, std::set<std::uint64_t>>, std::vector<LineCluster*>> alike;
  for (ExchangeGroup& group : groups) {
    if (group.lines.distance != 0) {
      alike[{group.lines.distance, group.instructions}].push_back(&group.lines);
    }
  }
  for (auto& [kind, clusters] : alike) {
    share_length(clusters);
  }
}

/// A trap by which a thread took the line from another.
struct Taking {
  TrapIndex::Trap trap;
  std::uint32_t run = 0;  // of owners, the one that it begins
};
struct Takings {
  std::vector<Taking> all;
  std::uint32_t runs = 0;
};
/// Fills `result` and reuses its memory.
void find_takings(const TrapIndex& index, std::uint32_t watch, std::uint32_t opener, std::uint32_t thread,
                  Takings& result) {
  result.all.clear();
  result.runs = 0;
  std::uint32_t owner = opener;
  for (const TrapIndex::Trap& trap : index.of(watch)) {
    const std::uint32_t by = index.thread(trap);
    result.runs += by != owner ? 1 : 0;
    if (by == thread && owner != thread) {
      result.all.push_back({trap, result.runs});
    }
    owner = by;
  }
}

std::uint32_t exchanges_between(std::span<const Exchange> exchanges, std::uint64_t after_ns, std::uint64_t until_ns) {
  double sum = 0;  // several possible producers share one
  for (const Exchange& exchange : exchanges) {
    sum += exchange.time_ns > after_ns && exchange.time_ns <= until_ns ? exchange.share : 0;
  }
  return static_cast<std::uint32_t>(std::lround(sum));
}

}  // namespace

ConsumerSamples::ConsumerSamples(std::span<const OwnershipTimeline> timelines) {
  auto latest = sites_.end();
  for (const OwnershipTimeline& timeline : timelines) {
    for (const SeenCommunication& seen : timeline.communications) {
      if (seen.expected()) {
        continue;
      }
      const ConsumerSite site{seen.consumer.thread.value, seen.consumer.instruction};
      if (latest == sites_.end() || latest->first != site) {
        latest = sites_.try_emplace(site).first;
        instructions_.insert(site.instruction);
      }
      ++latest->second.communications;
    }
  }
}

void ConsumerSamples::add(const profile::SampleRow& sample) {
  constexpr std::uint64_t line_bytes = profile::cache_line;
  if (sample.address == 0 || sample.access_ip == 0 || !instructions_.contains(sample.access_ip)) {
    return;
  }
  const auto found = sites_.find({sample.thread.value, sample.access_ip});
  if (found == sites_.end()) {
    return;
  }
  SiteSamples& site = found->second;
  site.first_ns = site.samples == 0 ? sample.time_ns : std::min(site.first_ns, sample.time_ns);
  site.last_ns = std::max(site.last_ns, sample.time_ns);
  ++site.samples;
  ++site.lines[sample.address / line_bytes * line_bytes];
}

std::vector<ExchangeGroup> exchange_groups(std::span<const profile::WatchRow> watches,
                                           std::span<const OwnershipTimeline> timelines,
                                           const ConsumerSamples& samples) {
  std::map<std::uint32_t, std::vector<Pool>> by_consumer;
  Sites sites = sites_of(watches, timelines, samples);
  for (auto& [site, pool] : sites) {
    drop_strays(pool);
    by_consumer[site.thread].push_back(std::move(pool));
  }
  sites.clear();
  std::vector<ExchangeGroup> groups;
  for (auto& [consumer, pools] : by_consumer) {
    for (Pool& pool : joined(std::move(pools))) {
      split_by_cluster(consumer, std::move(pool), groups);
    }
  }
  share_lengths(groups);
  return groups;
}

GroupExchanges::GroupExchanges(const ExchangeGroup& group, std::span<const OwnershipTimeline> timelines) {
  for (const std::uint32_t w : group.watches) {
    const OwnershipTimeline& timeline = timelines[w];
    if (timeline.gaps > 0 || timeline.ignored > 0) {
      continue;
    }
    const std::size_t begin = all_.size();
    for (const auto* seen_so : {&timeline.communications, &timeline.interrupted}) {
      for (const SeenCommunication& seen : *seen_so) {
        if (seen.consumer.thread.value == group.consumer && !seen.expected()) {
          all_.push_back({seen.consumer.time_ns, seen.share});
        }
      }
    }
    watches_.push_back({w, begin, all_.size() - begin});
  }
}

CyclesByIp cycles_of(const GroupExchanges& group, std::uint32_t thread, const TrapIndex& traps,
                     std::span<const profile::WatchRow> watches) {
  CyclesByIp by_ip;
  auto latest = by_ip.end();
  Takings taken;
  for (const GroupExchanges::Watch& watch : group.watches()) {
    const std::uint32_t w = watch.index;
    const std::span<const Exchange> exchanges = group.of(watch);
    find_takings(traps, w, watches[w].thread.value, thread, taken);
    for (auto from = taken.all.begin(); from != taken.all.end(); ++from) {
      const auto next = std::next(from);
      const auto to = std::find_if(next, taken.all.end(),
                                   [&](const Taking& taking) { return taking.trap.place == from->trap.place; });
      if (const std::uint64_t ip = traps.ip(from->trap); latest == by_ip.end() || latest->first != ip) {
        latest = by_ip.try_emplace(ip).first;
      }
      Followed& followed = latest->second;
      Ending ending{Ending::Kind::last, taken.runs - from->run};
      if (to != taken.all.end()) {
        ending.kind = Ending::Kind::cycle;
        const TrapStates& states = traps.states(from->trap);
        followed.cycles.push_back(
            {&states, from->trap.row, to->trap.row,
             exchanges_between(exchanges, states.time_ns(from->trap.row), states.time_ns(to->trap.row)),
             to->run - from->run});
      } else if (next != taken.all.end()) {
        ending.kind = Ending::Kind::elsewhere;
      }
      followed.endings.push_back(ending);
    }
  }
  return by_ip;
}

}  // namespace crosstalk::attribution
