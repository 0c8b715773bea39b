// SPDX-License-Identifier: Apache-2.0
#include "attribution/counters/counted_loops.h"

#include <unordered_map>
#include <utility>

#include "attribution/counters/counter_sums.h"
#include "attribution/loops/loop_index.h"

namespace crosstalk::attribution {
namespace {

/// The index of each loop's parent.
std::vector<std::optional<std::size_t>> around(std::span<const LoopRow> loops) {
  std::unordered_map<std::uint32_t, std::size_t> by_id;
  for (std::size_t i = 0; i < loops.size(); ++i) {
    by_id[loops[i].id] = i;
  }
  std::vector<std::optional<std::size_t>> outer(loops.size());
  for (std::size_t i = 0; i < loops.size(); ++i) {
    const auto found = loops[i].parent ? by_id.find(*loops[i].parent) : by_id.end();
    if (found != by_id.end() && loops[found->second].depth < loops[i].depth) {
      outer[i] = found->second;
    }
  }
  return outer;
}

}  // namespace

Result<CountedCode> count_code(const profile::ProfileReader& profile, const ProgramView& view,
                               std::span<const LoopRow> loops) {
  CountedCode counted;
  if (profile.counters().empty()) {
    return counted;
  }
  const LoopIndex index(view, loops);
  std::unordered_map<ModulePlace, std::optional<std::size_t>, ModulePlaceHash> known;
  const auto loop_of = [&](ThreadId thread, std::uint64_t time_ns, std::uint64_t ip) -> std::optional<std::size_t> {
    const auto place = view.spaces().find(view.moment(thread, time_ns), ip);
    if (!place) {
      return std::nullopt;
    }
    const auto [found, fresh] = known.try_emplace(*place);
    if (fresh) {
      found->second = index.innermost(*place);
    }
    return found->second;
  };
  const std::vector<std::optional<std::size_t>> outer = around(loops);
  CounterSums sums(profile.counters(), outer, loop_of);
  if (auto read = profile.for_each_reading([&](const profile::ReadingRow& reading) { sums.add(reading); }); !read) {
    return tl::unexpected<Error>(read.error());
  }
  counted.loops = sums.loops();
  counted.summary = std::make_shared<const CounterSummary>(CounterSummary{profile.counters(), sums.threads()});
  return counted;
}

void count_rates(std::vector<LoopRow>& loops, std::span<const CounterRates> counted) {
  using profile::CounterQuantity;
  const auto rate_of = [](const CountedRate* rate) {
    return rate != nullptr ? Rate{rate->per_s, rate->ci95, "", 0, true} : Rate{};
  };
  const auto replace = [](Rate& rate, Rate by_counters) {
    if (by_counters.per_s) {
      rate = std::move(by_counters);
    }
  };
  for (std::size_t i = 0; i < counted.size(); ++i) {
    LoopRates& rates = loops[i].rates;
    replace(rates.instructions, rate_of(counted[i].of(CounterQuantity::instructions)));
    replace(rates.loads, rate_of(counted[i].of(CounterQuantity::loads)));
    replace(rates.stores, rate_of(counted[i].of(CounterQuantity::stores)));
    replace(rates.flops, counted[i].flops());
  }
}

}  // namespace crosstalk::attribution
