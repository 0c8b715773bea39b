// SPDX-License-Identifier: Apache-2.0
// A model's verdict on a loop: its region, the roofs around its point, a bound on the gain, and kinds of advice.
//
// Roofs are compared on the vertical line through the loop's point. The verdict is undecided if the interval of the
// point spans two regions, or if it overlaps the intervals of several roofs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/roofline/estimate.h"
#include "models/roofline/roof.h"

namespace crosstalk::models::roofline {

/// Left of all ridges, between the nearest and the farthest level's ridge, right of all ridges.
enum class Region : std::uint8_t { memory, mixed, compute, undecided };

enum class Advice : std::uint8_t {
  access_pattern,          // coalesced and regular accesses
  locality,                // reuse of data while they are near
  raise_intensity,         // fewer bytes an operation, left of the ridge
  vectorise,               //
  thread,                  // more threads
  independent_operations,  // instruction-level parallelism: unroll, with several accumulators
  multiply_add,            // fused, or as many multiplications as additions
  fewer_instructions,      // of those that are not floating point
  balance_load,            // between threads
  hide_latency,            // more independent accesses in flight
  uncounted_instructions,  // look at instructions that the model does not count
  unroll_and_pad,          // streams
  affinity,                // data at the socket that uses them
  prefetch,                //
  smaller_data,            // for the snoop filter
  spread_traffic,          // memory traffic of more cores
  block_for_cache,         // capacity misses
  pad_arrays,              // conflict misses
  reorder_matrix,          // rows and columns
  reuse_vector,            // of the gathered vector
  served_nearer            // nothing: the data come from a nearer level already
};

/// The point of a roof at the loop's intensity.
struct Intersection {
  std::string name;
  Estimate height;  ///< in the unit of the model's y axis
  std::optional<Level> level = {};
  std::optional<Ceiling> ceiling = {};
  RoofKind kind = RoofKind::compute;
};

struct Verdict {
  Region region = Region::undecided;
  std::optional<Intersection> below, above;  ///< the next roofs that the point is surely above and below
  std::vector<Intersection> reached;         ///< roofs that the point may be at: the intervals overlap
  /// Factor, at least 1, by which performance rises at the next roof above: its performance over the loop's. At the
  /// highest roof it is that roof's. Absent above every roof.
  Result<Estimate> gain_bound = fail(ErrorCode::not_found, "no roof is known");
  std::vector<Advice> advice;  ///< the most relevant first
  std::string undecided;       ///< the reason, half a sentence; empty: the verdict is decided
};

/// memory: intensity < near ridge. compute: intensity >= far ridge. mixed: between. undecided: the intervals overlap.
/// The boundaries are derived; SPARCITY D1.2, 2 does not say which level's ridge bounds a region.
[[nodiscard]] Region region_between(const Estimate& intensity, const Estimate& near_ridge, const Estimate& far_ridge);

/// A verdict with region, roofs around the point and gain bound; without advice. `intersections` in any order.
[[nodiscard]] Verdict verdict_among(Region region, std::vector<Intersection> intersections,
                                    const Estimate& performance);

/// The roofs that limit the loop: those that it may be at, or else the next ones below and above, which are both
/// targets of optimisation (SPARCITY D1.2, 2). Lowest first; several reached ones are alternatives.
[[nodiscard]] std::vector<Intersection> bottlenecks(const Verdict& verdict);

/// True if no roof is below the point, none is reached, and one is above.
[[nodiscard]] bool below_every_roof(const Verdict& verdict);

/// memory: accesses. compute: vectors, threads. mixed or undecided: both (SPARCITY D1.2, 2). Below every roof first the
/// causes that no roof shows: latency, imbalance, uncounted instructions (there, 2.2.3 and 2.3).
void advise_by_region(Verdict& verdict);

/// The optimisation that brings a loop up to a ceiling, or past those below it (Roofline appendix, fig. A1 and A.1).
[[nodiscard]] Advice advice_to_reach(Ceiling ceiling);

/// The factor that a loop of this performance gains at a roof: height / performance, at least 1. Absent if the
/// performance may be 0.
[[nodiscard]] Result<Estimate> gain_at(const Estimate& height, const Estimate& performance);

}  // namespace crosstalk::models::roofline
