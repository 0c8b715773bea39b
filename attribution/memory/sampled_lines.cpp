// SPDX-License-Identifier: Apache-2.0
#include "attribution/memory/sampled_lines.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace crosstalk::attribution {
namespace {

/// An address space, and a line of it.
struct LineKey {
  std::uint32_t space = 0;
  std::uint64_t line = 0;
  bool operator==(const LineKey&) const = default;
};
struct LineHash {
  std::size_t operator()(const LineKey& key) const noexcept {
    return spread(key.line ^ (std::uint64_t{key.space} << 44U));
  }
};

/// Numbers for the kernel, for processes, and for shared memory.
class Spaces {
 public:
  [[nodiscard]] std::uint32_t of_kernel() { return number(0, 0, 0); }
  [[nodiscard]] std::uint32_t of(ProcessId process) { return number(1, process.value, 0); }
  [[nodiscard]] std::uint32_t of(const profile::SharedMappingRow& mapping) {
    return number(2, mapping.device, mapping.inode);
  }

 private:
  [[nodiscard]] std::uint32_t number(unsigned kind, std::uint64_t a, std::uint64_t b) {
    return numbers_.try_emplace({kind, a, b}, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }
  std::map<std::tuple<unsigned, std::uint64_t, std::uint64_t>, std::uint32_t> numbers_;
};

}  // namespace

SampledLines::SampledLines(std::span<const PlacedSample> samples, const ProgramView& view, const SharedIndex& shared,
                           std::uint32_t line_bytes)
    : samples_(samples), line_bytes_(line_bytes) {
  Spaces spaces;
  std::unordered_map<LineKey, std::uint32_t, LineHash> ids;
  std::vector<std::uint32_t> line_of(samples.size());
  for (std::uint32_t i = 0; i < samples.size(); ++i) {
    const MemorySample& sample = *samples[i].sample;
    if (sample.address == 0) {
      continue;
    }
    const Moment moment = view.moment(sample.thread, sample.time_ns);
    const auto bytes = sample.in_kernel_memory() ? std::nullopt : shared.find(moment, sample.address);
    const LineKey key = bytes ? LineKey{spaces.of(*bytes->mapping), bytes->file_offset / line_bytes}
                        : sample.in_kernel_memory() ? LineKey{spaces.of_kernel(), sample.address / line_bytes}
                                                    : LineKey{spaces.of(moment.process), sample.address / line_bytes};
    line_of[i] = ids.try_emplace(key, static_cast<std::uint32_t>(ids.size())).first->second;
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
