// SPDX-License-Identifier: Apache-2.0
// Sampled accesses by cache line, in order of time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "attribution/memory/memory_sites.h"
#include "attribution/objects/data_objects.h"

namespace crosstalk::attribution {

class SampledLines {
 public:
  /// Takes samples with an address. Memory that processes share is one line if the profile has their mappings; the
  /// kernel's memory is the same in all processes. All arguments must outlive this.
  SampledLines(std::span<const PlacedSample> samples, const ProgramView& view, const SharedIndex& shared,
               std::uint32_t line_bytes);

  /// Indices of the samples of a line.
  using Line = std::span<const std::uint32_t>;
  [[nodiscard]] const std::vector<Line>& lines() const { return lines_; }
  [[nodiscard]] const PlacedSample& operator[](std::uint32_t sample) const { return samples_[sample]; }
  [[nodiscard]] std::uint32_t line_bytes() const { return line_bytes_; }

 private:
  std::span<const PlacedSample> samples_;
  std::uint32_t line_bytes_;
  std::vector<std::uint32_t> order_;  // samples by line, then time
  std::vector<Line> lines_;
};

/// Facts that decide if a line is worth showing.
struct LineSummary {
  std::uint64_t stores = 0, hitm = 0;
  bool several_threads = false;
  /// True if several threads access it and one of them stores, or if it was found modified in another cache.
  [[nodiscard]] bool shared() const { return hitm > 0 || (several_threads && stores > 0); }
};
[[nodiscard]] LineSummary summary_of(const SampledLines& lines, SampledLines::Line line);

}  // namespace crosstalk::attribution
