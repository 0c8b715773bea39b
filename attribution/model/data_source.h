// SPDX-License-Identifier: Apache-2.0
// Decodes the place of an access's data from the kernel's perf_event_mem_data_src (linux/perf_event.h). Pure functions.
//
// The level comes in two encodings. The old one is a bit for each level, with bits for hit and miss (mem_lvl); the new
// one is a number, a remote flag, and a distance (mem_lvl_num, mem_remote, mem_hops). A kernel gives either or both.
// Both together say more than one alone: Intel's servers since Skylake report a line from another socket's cache as
// "L3" or "any cache" that is remote.
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::attribution {

/// From near to far.
enum class MemoryLevel : std::uint8_t {
  unknown,
  l0,
  l1,
  line_fill_buffer,  // the line was on its way already
  l2,
  l2_miss_buffer,
  l3,
  l4,
  memory_side_cache,
  any_cache,   // of this node, no more is known
  peer_cache,  // of another core of this node
  remote_cache,
  local_memory,
  remote_memory,
  persistent_memory,
  cxl,
  io,
  uncached,
};
inline constexpr std::size_t memory_levels = 18;

/// The other caches' answer about the line.
enum class Snoop : std::uint8_t {
  unknown,
  none,  // none was asked
  hit,
  miss,
  hitm,  // one had it, modified
};
inline constexpr std::size_t snoops = 5;

/// The way in which the address was translated.
enum class Translation : std::uint8_t {
  unknown,
  l1,
  l2,
  l1_or_l2,  // in a TLB, and which is not told
  walk,      // in none, so the page tables were read
  fault,     // the operating system was called
};
inline constexpr std::size_t translations = 6;

/// The place of a line that another cache had modified.
enum class Hitm : std::uint8_t { none, local, remote };

struct DataSource {
  bool load = false, store = false, prefetch = false, execute = false;
  MemoryLevel found = MemoryLevel::unknown;   // the place of the data
  MemoryLevel missed = MemoryLevel::unknown;  // a place without the data, if no more is known
  bool remote = false;                        // beyond this node
  Snoop snoop = Snoop::unknown;
  bool locked = false, lock_known = false;
  Translation translation = Translation::unknown;
  bool blocked_data = false, blocked_address = false;  // a load that had to wait for an earlier store

  [[nodiscard]] Hitm hitm() const { return snoop != Snoop::hitm ? Hitm::none : remote ? Hitm::remote : Hitm::local; }
  bool operator==(const DataSource&) const = default;
};

/// Decodes any value: unknown parts have their defaults in DataSource. 0 says nothing.
[[nodiscard]] DataSource decode_data_source(std::uint64_t data_source);

/// Stable names: "l1", "line_fill_buffer", "remote_cache", ...
[[nodiscard]] const char* memory_level_name(MemoryLevel level);
/// "unknown", "none", "hit", "miss", "hitm".
[[nodiscard]] const char* snoop_name(Snoop snoop);
/// "unknown", "l1", "l2", "l1_or_l2", "walk", "fault".
[[nodiscard]] const char* translation_name(Translation translation);

}  // namespace crosstalk::attribution
