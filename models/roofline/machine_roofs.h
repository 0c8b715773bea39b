// SPDX-License-Identifier: Apache-2.0
// The roofs of a calibrated machine for a loop: of its number of threads, of the width of its instructions, and of its
// mix of loads and stores or of operations.
//
// A roof is what the threads have together, or one thread's part of that: of a core's where there are more threads than
// cores, because its rate is by its CPU time. Numbers of threads between
// two measured ones are interpolated (`at_threads`), basis modelled; more threads than cores have what all cores have.
// Intervals are the spread of the tries, and 10 % to each side at least: the machine of the recording is not the
// machine of the calibration to the last per cent.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "models/machine.h"
#include "models/peaks.h"
#include "models/roofline/roof.h"
#include "models/roofline/sparse.h"

namespace crosstalk::models::roofline {

struct RoofThreads {
  std::uint32_t at_once = 1;
  bool part_of_one = false;  ///< one thread's part, else all together
  /// Threads that a roof is of.
  [[nodiscard]] std::uint32_t counted() const { return part_of_one ? 1 : at_once; }
  /// Those that run at the same time on so many cores.
  [[nodiscard]] std::uint32_t running(std::uint32_t cores) const { return std::min(counted(), cores); }
};

/// A loop's accesses to memory: the measured bandwidths most like them are its roofs.
struct AccessKind {
  double store_share = 0;           ///< of its accesses, 0 to 1
  bool streaming = false;           ///< its stores go past the caches
  std::optional<Width> width = {};  ///< of most accesses; absent: not known, the widest measured
};

/// B/s that threads request from each level, nearest level first: the slanted roofs of the cache-aware model (SPARCITY
/// D1.2, 2, fig. 1a). A level of which the mix was not measured has the roof of loads; levels without a figure are left
/// out.
[[nodiscard]] std::vector<Roof> requested_roofs(const Machine& machine, const AccessKind& kind, RoofThreads threads);
/// B/s that move between each level and the caches nearer to the core, lines that stores fetch and write back included.
[[nodiscard]] std::vector<Roof> moved_roofs(const Machine& machine, const AccessKind& kind, RoofThreads threads);

/// flop/s for this mix of operations: operations of different width and kind take the units one after the other. Fails
/// if a kind in the mix was not measured, or for an empty mix.
[[nodiscard]] Result<Roof> compute_roof(const Machine& machine, const FlopMix& mix, RoofThreads threads);

/// Operations on whole numbers.
struct IntegerWork {
  Width width = Width::scalar;
  std::uint32_t element_bytes = 8;  ///< 1, 2, 4 or 8
  bool multiplies = false;
  double operations = 0;
};
/// Operations a second for this mix. Elements below 4 bytes are taken to be as fast as 4 bytes by the instruction,
/// basis assumed. Fails likewise.
[[nodiscard]] Result<Roof> integer_roof(const Machine& machine, std::span<const IntegerWork> mix, RoofThreads threads);

/// flop/s for each width that was measured: fused multiply-adds if the width has them, else additions.
[[nodiscard]] std::vector<Roof> width_roofs(const Machine& machine, Precision precision, RoofThreads threads);

/// The ceilings of ceilings.h as the machine was measured, ascending: one scalar chain a thread, independent scalar
/// additions, those of the widest vectors, and fused multiply-adds, which are the roof. A ceiling that was not
/// measured, or that is not above the one before it, is left out; the latency of a chain is 4 cycles, basis assumed,
/// where the calibration lacks it.
[[nodiscard]] std::vector<Roof> in_core_roofs(const Machine& machine, Precision precision, RoofThreads threads);

/// Bandwidths of memory while 1, 2, 4, ... of the threads' cores make traffic (fig. A4), ascending, up to the roof of
/// all of them.
[[nodiscard]] std::vector<Roof> memory_ceilings(const Machine& machine, const AccessKind& kind, RoofThreads threads);

/// Roofs of sparse matrix-vector products, B/s that their instructions request (sparse.h), fastest first; empty: they
/// were not measured. `level` is the matrix's.
[[nodiscard]] std::vector<Roof> sparse_roofs(const Machine& machine, RoofThreads threads);
/// The range that reordering may change, for matrices in this level, with rows of any measured length. Fails if no pair
/// was measured there.
[[nodiscard]] Result<Band> sparse_band(const Machine& machine, Level level, RoofThreads threads);

/// A measured figure with its spread, `least_spread` of the value to each side at least. Fails if it is null or
/// refused.
[[nodiscard]] Result<Estimate> estimate_of_figure(const Figure* figure, double least_spread);

/// Cycles a second of a core while so many threads run; absent if the calibration lacks it.
[[nodiscard]] Result<Estimate> core_hz(const Machine& machine, std::uint32_t threads);

/// "scalar", "SSE", "AVX2", "AVX-512".
[[nodiscard]] const char* width_in_words(Width width);

}  // namespace crosstalk::models::roofline
