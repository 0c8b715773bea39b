// SPDX-License-Identifier: Apache-2.0
// Loops over arrays that do nothing but load and store, with vectors of one width. In assembly, as flop_kernels.h.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "models/machine.h"

namespace crosstalk::collectors::calibration {

/// Arrays are aligned to 64 bytes; their size is a multiple of this.
inline constexpr std::uint64_t traffic_round_bytes = 512;

/// a = b + scale * c and simpler.
struct TrafficArrays {
  double* a = nullptr;        // stores
  const double* b = nullptr;  // loads, of `load`, `copy` and `triad`
  const double* c = nullptr;  // loads, of `triad`
  std::uint64_t bytes = 0;    // of each array; not 0
  double scale = 1;           // the value that `store` stores, too
};

/// A vector's worth of words.
using Checksum = std::array<std::uint64_t, 8>;

struct TrafficKernel {
  models::Traffic traffic;
  models::Width width;
  /// Goes through the arrays `passes` times, once at least. `load` adds the words of its vectors to `checksum` by
  /// exclusive or.
  void (*run)(const TrafficArrays& arrays, std::uint64_t passes, Checksum& checksum);
};

[[nodiscard]] std::span<const TrafficKernel> traffic_kernels();
/// How many arrays a loop uses: 1, 2 or 3.
[[nodiscard]] unsigned arrays_of(models::Traffic traffic);
/// Bytes that the kernel's instructions load and store when it goes through arrays of `bytes` each.
[[nodiscard]] std::uint64_t requested_bytes(models::Traffic traffic, std::uint64_t bytes);

}  // namespace crosstalk::collectors::calibration
