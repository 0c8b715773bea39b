// SPDX-License-Identifier: Apache-2.0
#include "attribution/busy/loop_standing.h"

#include <algorithm>

namespace crosstalk::attribution {

using symbolizer::WaitsFor;

WaitsFor stands_at(const symbolizer::Way& way, std::size_t at) {
  constexpr std::size_t finished_at_once = 8;  // by the widest cores
  const std::size_t count = way.code.size();
  WaitsFor found = WaitsFor::nothing;
  for (std::size_t back = 1; back <= std::min(finished_at_once, count); ++back) {
    const WaitsFor before = symbolizer::waits_for(way.code[(at + count - back) % count]);
    if (before != WaitsFor::nothing && before != WaitsFor::store) {
      return before;
    }
    found = before == WaitsFor::store ? before : found;  // an earlier store counts only if nothing else waited
  }
  return found;
}

const LoopStandings::ByAddress& LoopStandings::standings(const CodeLoop& loop, std::uint32_t file) {
  const auto [known, fresh] = known_.try_emplace({file, loop.anatomy->header(loop.index)});
  if (fresh) {
    for (const symbolizer::Way& way : loop.anatomy->ways(loop.index)) {
      for (std::size_t i = 0; i < way.addresses.size(); ++i) {
        known->second.try_emplace(way.addresses[i], stands_at(way, i));
      }
    }
  }
  return known->second;
}

void LoopStandings::add(const CodeTotal& total) {
  if (total.in_kernel) {
    return;
  }
  const auto loop = total.place ? innermost_loop(view_.code(), *total.place) : std::nullopt;
  if (!loop) {
    return;
  }
  const ByAddress& by_address = standings(*loop, total.place->file);
  const auto found = by_address.find(total.place->address);
  const WaitsFor what = found != by_address.end() ? found->second : WaitsFor::nothing;
  for (std::uint32_t at = loop->index; at < loop->anatomy->loops(); at = loop->anatomy->parent(at)) {
    LoopStanding& sums = loops_[{total.place->file, loop->anatomy->header(at)}];
    double& sum = what == WaitsFor::load         ? sums.load
                  : what == WaitsFor::store      ? sums.store
                  : what == WaitsFor::fpu        ? sums.fpu
                  : what == WaitsFor::loaded_fpu ? sums.loaded_fpu
                                                 : sums.nothing;
    sum += std::max(0.0, total.ns - total.waiting_ns) * 1e-9;  // without waits for other threads
  }
}

}  // namespace crosstalk::attribution
