// SPDX-License-Identifier: Apache-2.0
// Estimates the bytes that an iteration of a loop moves between levels of the memory hierarchy from the strides and
// distances of its accesses. Needs no counter.
//
// The model: caches hold the lines touched last, up to their size (LRU, fully associative). A line that is accessed
// again comes from the nearest level that holds everything touched in between (the "layer condition" of stencils:
// Stengel, Treibig, Hager, Wellein, "Quantifying Performance Bottlenecks of Stencil Computations Using the
// Execution-Cache-Memory Model", ICS 2015). A stream sweeps repeatedly over its data, from the lowest address at which
// it was seen to the highest. A stored line is fetched before and written back after, unless the store bypasses the
// caches.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace crosstalk::models {

/// An access of the loop's body with a constant stride in bytes an iteration.
struct Stream {
  std::int64_t stride = 0;          // bytes an iteration; not 0
  std::uint32_t width = 0;          // bytes of an access
  std::uint64_t position = 0;       // its address at one moment, the same for all streams
  std::uint64_t low = 0, high = 0;  // addresses at which it was seen
  bool loads = false, stores = false;
  bool streaming = false;  // stores past the caches
};

/// An access whose address no register determines: uniformly distributed over a range.
struct Scattered {
  std::uint64_t low = 0, high = 0;  // addresses at which it was seen
  bool stores = false;
};

/// Cache sizes available to a thread, nearest first; 0: the machine has no such level.
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
  /// The parts of the accessed lines that come from L1D, L2, L3 and memory.
  std::array<double, 4> served{};
};

/// Traffic of the accesses of one iteration. Streams to one line that lie less than a line apart make one fetch. The
/// result is unknown if the data touched in between are about as large as a cache (0.75 to 1.5 times), because an LRU
/// model is wrong there. Each scattered access uses a line of its own, and finds it in a cache with the probability
/// that the cache's part of the range gives.
[[nodiscard]] StreamTraffic stream_traffic(std::span<const Stream> streams, std::span<const Scattered> scattered,
                                           const CacheSizes& caches);

}  // namespace crosstalk::models
