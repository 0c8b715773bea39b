// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/ids.h"
#include "profile/region_table.h"

namespace crosstalk::profile {

using RegionId = Id<struct RegionTag>;  ///< a region in a profile; 0: none

/// A region that the program marks, by its parent region. Two of one name in the same parent are the same.
struct RegionRow {
  RegionId id;      // from 1 on, without gaps; greater than `parent`
  RegionId parent;  // 0: it lies in none
  std::string name;
};

/// The time of a thread in a region.
struct ThreadRegionRow {
  ThreadId thread;
  RegionId region;
  std::uint64_t entries = 0;
  std::uint64_t elapsed_ns = 0;  // regions within it included; what is open counts up to the latest look
  std::array<std::uint64_t, wait_classes> waited_ns{};  // by WaitClass; in it, and in no region within it
};

}  // namespace crosstalk::profile
