// SPDX-License-Identifier: Apache-2.0
// Regions that a program marks (include/crosstalk/region.h): how long each thread was in each, and how often. A thread
// keeps these sums in the arena (arena.h), behind its ring, and the recorder may read them at any time.
//
// Regions form a tree: a node is a name within its parent node. A thread's nodes are its own; the recorder matches them
// by their names (daemon/region_table.h).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profile/wait_table.h"
#include "profile/watch_settings.h"

namespace crosstalk::profile {

/// A name that some thread of the session uses, in ArenaHeader::region_names. A target moves it from free to claimed by
/// compare-and-swap, fills it in, and makes it ready; after that it never changes. A name may be there twice.
struct RegionName {
  static constexpr std::size_t most_bytes = 56;  // a longer name is cut off
  std::atomic<std::uint32_t> state;              // RegionNameState
  std::uint32_t hash;
  char text[most_bytes];  // ends with the first NUL, if there is one
};
static_assert(sizeof(RegionName) == 64);
enum class RegionNameState : std::uint32_t { free = 0, claimed = 1, ready = 2 };
/// The most names of a session; they are numbered from 1.
inline constexpr std::uint32_t most_region_names = 255;

struct alignas(cache_line) ThreadRegions {
  static constexpr std::uint32_t most_nodes = 64;
  static constexpr std::uint32_t most_open = 32;
  /// The numbers of the parent node (0: none) and of the node's name; 0: not in use.
  using Key = std::uint32_t;
  static constexpr unsigned parent_shift = 16;
  [[nodiscard]] static constexpr Key key_of(std::uint32_t parent, std::uint32_t name) {
    return parent << parent_shift | name;
  }
  [[nodiscard]] static constexpr std::uint32_t parent_of(Key key) { return key >> parent_shift; }
  [[nodiscard]] static constexpr std::uint32_t name_of(Key key) { return key & ((1U << parent_shift) - 1); }

  /// Number n is node[n - 1].
  struct Node {
    std::atomic<Key> key;                                // set before anything refers to the node
    std::atomic<std::uint64_t> entries;                  // how often it was begun
    std::atomic<std::uint64_t> elapsed_ns;               // of those that have ended, regions within it included
    std::atomic<std::uint64_t> waited_ns[wait_classes];  // by WaitClass; in it, and in no region within it
  };
  struct Open {
    std::atomic<std::uint64_t> begin_ns;  // CLOCK_MONOTONIC
    std::atomic<std::uint64_t> frame;     // stack pointer of the function that began it
    std::atomic<std::uint32_t> node;      // its number; 0: of none, there was no room for it
  };
  // Written by the thread itself only. Fields are written one by one, so a reader may see a region's time without its
  // entry.
  std::atomic<std::uint32_t> depth;         // open regions, also those beyond `open`
  std::atomic<std::uint32_t> nodes;         // in use
  std::atomic<std::uint64_t> without_room;  // begun where there was no room for one more: they count nowhere
  std::atomic<std::uint64_t> unmatched;     // ends of regions of which none was open
  Open open[most_open];
  Node node[most_nodes];

  /// The innermost region that is open; 0: none.
  [[nodiscard]] std::uint32_t current() const {
    std::uint32_t at = depth.load(std::memory_order_relaxed);
    for (at = at < most_open ? at : most_open; at > 0; --at) {
      if (const std::uint32_t number = open[at - 1].node.load(std::memory_order_relaxed); number != 0) {
        return number;
      }
    }
    return 0;
  }
};

/// Bytes behind each ring in the arena. Only threads of programs that mark regions touch them.
inline constexpr std::uint32_t thread_regions_bytes = 4096;
static_assert(sizeof(ThreadRegions) <= thread_regions_bytes);

}  // namespace crosstalk::profile
