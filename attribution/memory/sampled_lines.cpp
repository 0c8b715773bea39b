// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/sampled_lines.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace crosstalk::attribution {
namespace {

struct PlaceHash {
  std::size_t operator()(const MemoryPlace& place) const noexcept {
    return spread(place.address ^ (std::uint64_t{place.space} << 44U));
  }
};

}  // namespace

SampledLines::SampledLines(std::span<const PlacedSample> samples, const ProgramView& view, const SharedIndex& shared,
                           std::uint32_t line_bytes)
    : samples_(samples), line_bytes_(line_bytes) {
  std::unordered_map<MemoryPlace, std::uint32_t, PlaceHash> ids;
  std::vector<std::uint32_t> line_of(samples.size());
  for (std::uint32_t i = 0; i < samples.size(); ++i) {
    const MemorySample& sample = *samples[i].sample;
    if (sample.address == 0) {
      continue;
    }
    MemoryPlace line = sample.in_kernel_memory()
                           ? MemoryPlace{MemoryPlace::kernel, sample.address}
                           : shared.place(view.moment(sample.thread, sample.time_ns), sample.address);
    line.address /= line_bytes;
    line_of[i] = ids.try_emplace(line, static_cast<std::uint32_t>(ids.size())).first->second;
    order_.push_back(i);
  }
  std::sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(line_of[a], samples[a].sample->time_ns, a) <
           std::tuple(line_of[b], samples[b].sample->time_ns, b);
  });
  for (std::size_t begin = 0; begin < order_.size();) {
    std::size_t end = begin + 1;
    while (end < order_.size() && line_of[order_[end]] == line_of[order_[begin]]) {
      ++end;
    }
    lines_.emplace_back(std::span(order_).subspan(begin, end - begin));
    begin = end;
  }
}

LineSummary summary_of(const SampledLines& lines, SampledLines::Line line) {
  LineSummary summary;
  const ThreadId first = lines[line.front()].sample->thread;
  for (const std::uint32_t index : line) {
    const PlacedSample& placed = lines[index];
    summary.stores += stores(placed.sample->access) ? 1 : 0;
    summary.hitm += loads(placed.sample->access) && placed.source.hitm() != Hitm::none ? 1 : 0;
    summary.several_threads = summary.several_threads || placed.sample->thread != first;
  }
  return summary;
}

}  // namespace crosstalk::attribution
