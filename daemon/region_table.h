// SPDX-License-Identifier: Apache-2.0
// Converts the regions that programs mark from their threads' tables (profile/region_table.h) to rows.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/row_sink.h"
#include "daemon/slot_table.h"
#include "profile/arena.h"
#include "profile/region_row.h"

namespace crosstalk::daemon {

/// Contents of a thread's table at one moment.
struct RegionsSeen {
  struct Node {
    std::uint32_t parent = 0;  // number of a node before this one; 0: none
    std::string name;
    std::uint64_t entries = 0, elapsed_ns = 0;
    std::array<std::uint64_t, profile::wait_classes> waited_ns{};
  };
  std::vector<Node> nodes;  // number n is [n - 1]
  std::uint64_t without_room = 0, unmatched = 0;
};

/// Reads a table. Drops nodes from the first impossible one on, because targets can write the table. An open region
/// counts up to `now_ns`.
[[nodiscard]] RegionsSeen regions_seen(const profile::ThreadRegions& table, const profile::ArenaHeader& arena,
                                       std::uint64_t now_ns);

/// The regions of a session. Not thread-safe.
class RegionTable {
 public:
  explicit RegionTable(RowSink& sink) : sink_(&sink) {}

  /// Learns the slot's node numbers.
  void learn(std::uint32_t slot, const RegionsSeen& seen);
  /// Puts a slot's sums so far as those of `thread`, if they have changed. Also learns its nodes.
  void put(std::uint32_t slot, ThreadId thread, const RegionsSeen& seen);
  /// Returns the region's id; 0 if no node of this number is known.
  [[nodiscard]] profile::RegionId id_of(std::uint32_t slot, std::uint32_t node) const;
  /// Reports the regions that the slot's ended thread could not count.
  void close(std::uint32_t slot);
  /// Puts all regions into `sink`, because earlier rows may be lost or in another file. Threads' sums follow at the
  /// next put().
  void put_everything(RowSink& sink);

 private:
  struct Slot {
    std::vector<profile::RegionId> ids;            // by node
    std::vector<profile::ThreadRegionRow> latest;  // as put
    std::uint64_t without_room = 0, unmatched = 0;
  };
  profile::RegionId region(profile::RegionId parent, const std::string& name);
  void say(const char* code, const std::string& text);

  RowSink* sink_;
  SlotTable<Slot> slots_;
  std::map<std::pair<profile::RegionId, std::string>, profile::RegionId> ids_;
  std::vector<profile::RegionRow> rows_;
};

}  // namespace crosstalk::daemon
