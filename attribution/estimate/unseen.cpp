// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/unseen.h"

#include <algorithm>

#include "attribution/estimate/intervals.h"

namespace crosstalk::attribution {
namespace {

template <class Looks, class Key>
const Looks* in(const std::map<Key, Looks>& looks, const Key& key) {
  const auto found = looks.find(key);
  return found != looks.end() ? &found->second : nullptr;
}

/// Parts of the strata of one thread, or of all threads, by sort.
struct Parts {
  std::vector<WatchedPart> of_true, of_false;
  [[nodiscard]] SortLimits limits() const { return {most_unseen_ns(of_true), most_unseen_ns(of_false)}; }
};

}  // namespace

// Each part filled with unseen communication uses up `watches` of the events that may have been missed. Fills the parts
// with the most time for each event first.
double most_unseen_ns(std::vector<WatchedPart> parts) {
  std::sort(parts.begin(), parts.end(),
            [](const WatchedPart& a, const WatchedPart& b) { return a.ns * b.watches > b.ns * a.watches; });
  double events = most_unseen_events;
  double sum = 0;
  for (const WatchedPart& part : parts) {
    if (part.watches > events) {
      return sum + part.ns * events / part.watches;
    }
    events -= part.watches;
    sum += part.ns;
  }
  return sum;
}

void Sight::add(const Evidence& evidence, bool decided) {
  if (!decided || evidence.watch == nullptr) {
    return;
  }
  for (Looks* looks : {&looks_[evidence.stratum], &of_thread_[{evidence.stratum, evidence.thread.value}]}) {
    looks->all_armed = looks->all_armed && evidence.arming.complete();
    looks->weight += evidence.weight;
    looks->weight2 += evidence.weight * evidence.weight;
    const std::uint64_t at = evidence.watch->sample_address - evidence.watch->line;
    for (const profile::WatchWord& word : evidence.watch->words) {
      Words& words =
          word.offset <= at && at < std::uint64_t{word.offset} + word.length ? looks->sampled : looks->others;
      words.drawn += 1;
      words.probability += word.probability * evidence.arming.chance(1);
    }
  }
}

Sight::Effective Sight::effective(const Looks* looks, double most) {
  if (looks == nullptr || looks->weight2 <= 0) {
    return {};
  }
  const double watches = looks->weight * looks->weight / looks->weight2 / most;  // as many of even weights (Kish)
  return {watches * looks->sampled.chance(), watches * looks->others.chance()};
}

UnseenLimits Sight::limits(const Strata& strata, const Censoring* censoring, profile::WeightUnit unit) const {
  struct Sums {
    Parts anywhere, of_partner;
  };
  const auto most = [&](std::uint32_t stratum) {
    return censoring != nullptr ? censoring->most(stratum, strata.all()[stratum]) : 1;
  };
  std::map<std::uint32_t, Sums> threads;
  std::vector<double> all_ns(strata.all().size(), 0);
  for (const StratumShare& share : strata.shares()) {
    if (strata.all()[share.stratum].unit != unit) {
      continue;
    }
    const Effective watches = effective(in(of_thread_, std::pair{share.stratum, share.thread}), most(share.stratum));
    Sums& sums = threads[share.thread];
    const Looks* all_looks = in(looks_, share.stratum);
    const bool unarmed = all_looks != nullptr && !all_looks->all_armed;
    const bool of_partner = strata.all()[share.stratum].suspected || unarmed;
    for (Parts* parts : {&sums.anywhere, of_partner ? &sums.of_partner : nullptr}) {
      if (parts != nullptr) {
        parts->of_true.push_back({share.weight, watches.of_true});
        parts->of_false.push_back({share.weight, watches.of_false});
      }
    }
    all_ns[share.stratum] += share.weight;
  }
  Parts all;
  for (std::uint32_t stratum = 0; stratum < all_ns.size(); ++stratum) {
    const Effective watches = effective(in(looks_, stratum), most(stratum));
    all.of_true.push_back({all_ns[stratum], watches.of_true});
    all.of_false.push_back({all_ns[stratum], watches.of_false});
  }
  UnseenLimits result{all.limits(), {}};
  for (const auto& [thread, sums] : threads) {
    result.threads.push_back({thread, sums.anywhere.limits(), sums.of_partner.limits()});
  }
  return result;
}

}  // namespace crosstalk::attribution
