// SPDX-License-Identifier: Apache-2.0
// How many bytes an iteration of a loop moves between the levels of a memory hierarchy, from the strides of its
// accesses and from how far apart they are: no counter is needed.
//
// The model: caches hold what was touched last, up to their size (LRU, fully associative). A line that is accessed
// again comes from the nearest level that holds all that was touched in between (the "layer condition" of stencils:
// Stengel, Treibig, Hager, Wellein, "Quantifying Performance Bottlenecks of Stencil Computations Using the
// Execution-Cache-Memory Model", ICS 2015). A stream sweeps over its data again and again, from the lowest address that
// it was seen at to the highest. What is stored is fetched before and written back after, unless it is stored past the
// caches.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace crosstalk::models {

/// An access of the loop's body whose address moves by the same number of bytes each iteration.
struct Stream {
  std::int64_t stride = 0;          // bytes an iteration; not 0
  std::uint32_t width = 0;          // bytes of an access
  std::uint64_t position = 0;       // its address at one moment, the same for all streams
  std::uint64_t low = 0, high = 0;  // addresses at which it was seen
  bool loads = false, stores = false;
  bool streaming = false;  // stores past the caches
};

/// An access whose address follows from no register: anywhere in a range, each place as likely as any other.
struct Scattered {
  std::uint64_t low = 0, high = 0;  // addresses at which it was seen
  bool stores = false;
};

/// What a thread has of the caches, nearest first; 0: the machine has no such level.
struct CacheSizes {
  std::uint64_t l1d = 0, l2 = 0, l3 = 0;
};

/// Bytes an iteration that pass between a level and the caches nearer to the core.
struct LevelBytes {
  double l2 = 0, l3 = 0, memory = 0;
};

struct StreamTraffic {
  std::optional<LevelBytes> bytes;  // nullopt: see `unknown`
  std::string unknown;              // why, half a sentence
  /// Of the lines that are accessed, the part that comes from L1D, L2, L3 and memory.
  std::array<double, 4> served{};
};

/// Of the accesses of one iteration. Those of streams to one line that lie less than a line apart are one fetch. Where
/// what is touched in between is about as much as a cache holds (0.75 to 1.5 times), nothing is said: an LRU model is
/// wrong there. Each scattered access is a line of its own, found in a cache with the part of its range that fits
/// there.
[[nodiscard]] StreamTraffic stream_traffic(std::span<const Stream> streams, std::span<const Scattered> scattered,
                                           const CacheSizes& caches);

}  // namespace crosstalk::models
