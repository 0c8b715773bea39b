// SPDX-License-Identifier: Apache-2.0
// Sampled accesses by source line, data object, loop, and place of their data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attribution/memory/access_sums.h"
#include "attribution/memory/memory_sites.h"
#include "attribution/objects/data_objects.h"

namespace crosstalk::attribution {

/// The object of a sampled access with an address in user memory, by its index; else a substitute.
class MemoryObjects {
 public:
  explicit MemoryObjects(DataObjects& objects) : objects_(objects) {}
  struct Place {
    std::uint32_t object = 0;
    std::uint64_t offset = 0;
  };
  static constexpr std::uint32_t kernel_memory = UINT32_MAX;
  [[nodiscard]] Place of(const MemorySample& sample);
  [[nodiscard]] std::string name(std::uint32_t object) const;
  [[nodiscard]] ObjectKind kind(std::uint32_t object) const;
  [[nodiscard]] std::optional<std::uint64_t> size(std::uint32_t object) const;
  /// Empty if the type is not known.
  [[nodiscard]] std::string field(Place place);

 private:
  DataObjects& objects_;
};

/// Rows, the weightiest first, and their number before the least were left out.
template <class Row>
struct Cut {
  std::vector<Row> rows;
  std::uint64_t all = 0;
};

/// Calls that lead to the rows: first the wanted ids, then their addresses.
class LineRows {
 public:
  LineRows(std::span<const PlacedSample> samples, const MemorySites& sites, std::size_t max_rows);
  /// The most frequent call chains in the samples of the weightiest rows.
  [[nodiscard]] std::unordered_set<std::uint32_t> wanted_chains() const;
  using Chains = std::unordered_map<std::uint32_t, std::vector<std::uint64_t>>;
  [[nodiscard]] Cut<MemoryLine> finish(const Chains& chains, const ProgramView& view, std::uint32_t cycle_ps);

 private:
  struct Chain {
    std::uint64_t samples = 0;
    const MemorySample* first = nullptr;
  };
  struct Gathered {
    std::uint32_t site = 0;  // the first
    AccessSums sums;
    std::map<std::uint32_t, Chain> chains;
    std::uint64_t with_chain = 0;
  };
  [[nodiscard]] static std::vector<std::pair<std::uint32_t, Chain>> weightiest(const Gathered& row);
  [[nodiscard]] static std::vector<CallPath> paths_of(const Gathered& row, const Chains& chains,
                                                      const ProgramView& view);

  const MemorySites& sites_;
  std::vector<Gathered> rows_;  // the weightiest, in order
  std::uint64_t all_ = 0;
};

[[nodiscard]] Cut<MemoryObject> memory_objects(std::span<const PlacedSample> samples, MemoryObjects& objects,
                                               std::size_t max_rows, std::uint32_t cycle_ps);
[[nodiscard]] Cut<MemoryLoop> memory_loops(std::span<const PlacedSample> samples, const MemorySites& sites,
                                           std::span<const LoopRow> loops, std::size_t max_rows,
                                           std::uint32_t cycle_ps);
/// By level; leaves out levels without samples.
[[nodiscard]] std::vector<SourceRow> source_rows(std::span<const PlacedSample> samples);

}  // namespace crosstalk::attribution
