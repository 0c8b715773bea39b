// SPDX-License-Identifier: Apache-2.0
// The objects that communicate: their threads, offsets and fields.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attribution/estimate/located.h"
#include "attribution/estimate/row_table.h"
#include "attribution/model/model.h"
#include "attribution/objects/data_objects.h"
#include "base/hash.h"

namespace crosstalk::attribution {

/// A thread's accesses at an offset of an object.
struct ObjectOffset {
  std::uint32_t thread = 0;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  auto operator<=>(const ObjectOffset&) const = default;
};
struct OffsetCounts {
  std::uint64_t loads = 0, stores = 0;
};

/// Used in the same way as LineTable. All arguments must outlive this.
class ObjectTable {
 public:
  ObjectTable(std::span<const LocatedContribution> located, const CommunicationInputs& inputs, DataObjects& objects);
  /// Independent of find_offsets().
  void add_amounts(const LocatedContribution& located, const Summand& summand) {
    table_.add_amounts(located.object, summand);
  }
  void find_offsets();
  [[nodiscard]] std::vector<ObjectRow> finish();

 private:
  struct OffsetHash {
    std::size_t operator()(const ObjectOffset& at) const noexcept {
      return spread(at.offset ^ (std::uint64_t{at.thread} << 32U) ^ (std::uint64_t{at.bytes} << 56U));
    }
  };
  struct Gathered {
    PurposeSums costs, sightings;                                            // by purpose
    std::map<std::uint64_t, PurposeSums> sync_costs, sync_sightings;         // of locks and the like, by offset
    std::unordered_map<std::uint64_t, std::pair<double, double>> by_offset;  // consumer's offset -> cost, detections
    std::unordered_map<ObjectOffset, OffsetCounts, OffsetHash> offsets;
  };
  [[nodiscard]] std::vector<SyncField> sync_fields_of(std::uint32_t object, bool by_cost);
  void add_offset(ThreadId thread, std::uint64_t time_ns, std::uint64_t address, std::uint32_t bytes,
                  OffsetCounts counts);

  const CommunicationInputs& inputs_;
  DataObjects& objects_;
  RowTable table_;
  std::vector<Gathered> gathered_;  // by object
};

}  // namespace crosstalk::attribution
