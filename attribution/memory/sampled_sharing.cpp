// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/sampled_sharing.h"

#include <algorithm>
#include <map>
#include <utility>

#include "attribution/estimate/intervals.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

/// The most stores to examine on either side of an access: more add no information.
constexpr std::size_t most_stores = 64;

enum class SharingEvidence { none, possible, modified };

/// The evidence that the access got its line from another thread's cache.
SharingEvidence evidence_of(const PlacedSample& placed) {
  const DataSource& source = placed.source;
  if (loads(placed.sample->access)) {
    const bool told = source.found != MemoryLevel::unknown || source.missed != MemoryLevel::unknown;
    return source.hitm() != Hitm::none ? SharingEvidence::modified
           : told                      ? SharingEvidence::none
                                       : SharingEvidence::possible;
  }
  return source.found == MemoryLevel::l1 ? SharingEvidence::none : SharingEvidence::possible;
}

/// True if two accesses overlap. If a width is not known, uses the first byte.
bool overlap(const MemorySample& a, const MemorySample& b) {
  const auto end = [](const MemorySample& sample) { return sample.address + std::max<unsigned>(sample.width, 1); };
  return a.address < end(b) && b.address < end(a);
}

struct PairSums {
  SampledPair pair;
  double weight = 0, weight2 = 0, greatest = 0;
  bool all_count = true;
};

class Sharing {
 public:
  explicit Sharing(const SampledLines& lines, std::uint64_t window_ns) : lines_(lines), window_ns_(window_ns) {}
  void add(SampledLines::Line line);
  [[nodiscard]] SampledSharing finish();

 private:
  struct Share {
    double part = 0, overlapping = 0;
  };
  /// The parts of other threads' sampled stores near `at`, which is before all of `later` stores in order of time.
  [[nodiscard]] std::map<std::uint32_t, Share> producers(const MemorySample& at, std::size_t later) const;
  void share_out(const PlacedSample& placed, SharingEvidence evidence, std::size_t later);

  const SampledLines& lines_;
  std::uint64_t window_ns_;
  std::vector<const MemorySample*> stores_;  // of the line at hand
  std::map<std::pair<std::uint32_t, std::uint32_t>, PairSums> pairs_;
  SampledSharing result_;
  double unattributed_weight_ = 0;
  bool all_count_ = true;
};

std::map<std::uint32_t, Sharing::Share> Sharing::producers(const MemorySample& at, std::size_t later) const {
  std::map<std::uint32_t, Share> shares;
  std::size_t found = 0;
  const auto take = [&](const MemorySample& store) {
    if (store.thread != at.thread) {
      Share& share = shares[store.thread.value];
      share.part += 1;
      share.overlapping += overlap(store, at) ? 1 : 0;
      ++found;
    }
  };
  for (std::size_t i = later; i > 0 && later - i < most_stores; --i) {
    if (at.time_ns - stores_[i - 1]->time_ns > window_ns_) {
      break;
    }
    take(*stores_[i - 1]);
  }
  for (std::size_t i = later; i < stores_.size() && i - later < most_stores; ++i) {
    if (stores_[i]->time_ns - at.time_ns > window_ns_) {
      break;
    }
    take(*stores_[i]);
  }
  for (auto& [thread, share] : shares) {
    share.part /= static_cast<double>(found);
    share.overlapping /= static_cast<double>(found);
  }
  return shares;
}

void Sharing::share_out(const PlacedSample& placed, SharingEvidence evidence, std::size_t later) {
  const MemorySample& sample = *placed.sample;
  const bool modified = evidence == SharingEvidence::modified;
  const auto shares = producers(sample, later);
  const double weight = sample.counts_accesses() ? static_cast<double>(sample.weight) : 0;
  if (modified) {
    ++result_.hitm_samples;
    all_count_ = all_count_ && sample.counts_accesses();
    if (shares.empty()) {
      ++result_.unattributed_samples;
      unattributed_weight_ += weight;
    }
  }
  for (const auto& [producer, share] : shares) {
    PairSums& sums = pairs_[{producer, sample.thread.value}];
    if (!modified) {
      sums.pair.possible_samples += share.part;
      continue;
    }
    sums.pair.hitm_samples += share.part;
    sums.pair.overlapping_samples += share.overlapping;
    sums.pair.hitm_remote_samples += placed.source.hitm() == Hitm::remote ? share.part : 0;
    sums.all_count = sums.all_count && sample.counts_accesses();
    sums.weight += weight * share.part;
    sums.weight2 += weight * weight * share.part;
    sums.greatest = std::max(sums.greatest, weight);
  }
}

void Sharing::add(SampledLines::Line line) {
  stores_.clear();
  for (const std::uint32_t index : line) {
    const PlacedSample& placed = lines_[index];
    result_.hitm_known = result_.hitm_known || (loads(placed.sample->access) && placed.source.snoop != Snoop::unknown);
    if (stores(placed.sample->access)) {
      stores_.push_back(placed.sample);
    }
  }
  if (!summary_of(lines_, line).shared()) {
    return;
  }
  std::size_t later = 0;  // the first store that is not before the access
  for (const std::uint32_t index : line) {
    const PlacedSample& placed = lines_[index];
    while (later < stores_.size() && stores_[later]->time_ns < placed.sample->time_ns) {
      ++later;
    }
    if (const SharingEvidence evidence = evidence_of(placed); evidence != SharingEvidence::none) {
      share_out(placed, evidence, later);
    }
  }
}

SampledSharing Sharing::finish() {
  result_.window_s = static_cast<double>(window_ns_) / ns_per_s;
  for (auto& [key, sums] : pairs_) {
    sums.pair.producer = key.first;
    sums.pair.consumer = key.second;
    if (sums.all_count && sums.pair.hitm_samples > 0) {
      sums.pair.hitm = sums.weight;
      const Interval interval = event_interval(sums.weight, sums.weight2, sums.greatest);
      sums.pair.hitm_ci95 = {{interval.low, interval.high}};
    }
    result_.pairs.push_back(sums.pair);
  }
  if (result_.unattributed_samples > 0 && all_count_) {
    result_.unattributed_hitm = unattributed_weight_;
  }
  return std::move(result_);
}

}  // namespace

SampledSharing sampled_sharing(const SampledLines& lines, std::uint64_t window_ns) {
  Sharing sharing(lines, window_ns);
  for (const SampledLines::Line line : lines.lines()) {
    sharing.add(line);
  }
  return sharing.finish();
}

}  // namespace crosstalk::attribution
