// SPDX-License-Identifier: Apache-2.0
// Roofs and ceilings: upper bounds of a loop's performance on a machine.
//
// Intensities are in flop/B. A bandwidth roof of B B/s bounds the performance at intensity I by B I flop/s: a slanted
// line of a log-log plot. A compute roof is horizontal, in flop/s. A retirement roof is horizontal, in instructions a
// cycle of one core.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "models/machine.h"
#include "models/roofline/estimate.h"

namespace crosstalk::models::roofline {

enum class RoofKind : std::uint8_t { bandwidth, compute, retirement };

/// The optimisation by which a program comes as high as a ceiling. Each includes those before it in its group.
enum class Ceiling : std::uint8_t {
  tlp,                ///< all cores compute, one dependent chain of scalar operations a thread
  ilp,                ///< independent operations fill the pipeline
  dlp,                ///< vector instructions
  single_issue,       ///< one scalar operation a cycle, all that a core without fused or parallel multiply and add has
  multiply_add,       ///< multiplications and additions at the same time: the peak
  mix,                ///< that part of the instructions is floating point
  balance,            ///< that many threads share the work
  one_socket,         ///< unrolled and padded streams, all data at one socket
  affinity,           ///< data at the socket of the core that uses them
  software_prefetch,  ///< prefetch instructions at a tuned distance
  snoop_filter,       ///< data so small that the snoop filter works
  active_cores        ///< that part of the cores makes memory traffic
};

struct Roof {
  std::string name;
  RoofKind kind = RoofKind::compute;
  std::optional<Level> level = {};          ///< of a bandwidth roof
  std::optional<Width> width = {};          ///< of the instructions that reach it; absent: any
  std::optional<Operation> operation = {};  ///< of the instructions that reach it; absent: any
  std::optional<Ceiling> ceiling = {};      ///< absent: a roof of the machine
  std::uint32_t threads = 1;                ///< that reach it together
  Estimate height;                          ///< B/s, flop/s or instructions a cycle
};

/// "L1D", "L2", "L3", "memory".
[[nodiscard]] const char* level_in_words(Level level);

/// The threads, width and operation of a loop's instructions. Absent: mixed or not known.
struct Setting {
  std::uint32_t threads = 1;
  std::optional<Width> width = {};
  std::optional<Operation> operation = {};
};
/// True if the roof bounds loops of this setting: it has the same number of threads, and its width and operation are
/// the loop's or any.
[[nodiscard]] bool comparable(const Roof& roof, const Setting& setting);
[[nodiscard]] std::vector<Roof> comparable_roofs(std::span<const Roof> roofs, const Setting& setting);

/// The roof for a number of threads between those of two measured roofs that are alike otherwise, basis modelled. Its
/// value is linear between the two. Capacities that threads share saturate earlier, so the interval goes up to perfect
/// scaling, at most the roof of `more`. Refuses numbers outside, where nothing was measured.
[[nodiscard]] Result<Roof> at_threads(const Roof& fewer, const Roof& more, std::uint32_t threads);

/// Intensity in flop/B from which on the compute roof bounds, not the bandwidth: R = F / B (SPARCITY D1.2, 2; fig. 1a).
[[nodiscard]] Result<Estimate> ridge(const Roof& bandwidth, const Roof& compute);

/// min(B I, F), flop/s: the classic roofline (SPARCITY D1.2, eq. 13).
[[nodiscard]] Result<Estimate> attainable(const Roof& bandwidth, const Roof& compute, const Estimate& intensity);

/// Refuses a roof of another kind, or one that may be 0.
[[nodiscard]] Result<void> check_roof(const Roof& roof, RoofKind kind);
/// Bandwidth roofs of one level each, nearest level first, for the same threads as the compute roof. Refuses an empty
/// list, a level that is absent or named twice, and roofs for other threads. Widths may differ: a loop's loads and
/// stores need not be as wide as its operations.
[[nodiscard]] Result<std::vector<Roof>> levels_in_order(std::vector<Roof> bandwidths, const Roof& compute);

}  // namespace crosstalk::models::roofline
