// SPDX-License-Identifier: Apache-2.0
// A loop's place in a roofline model: its points, the roofs that hold for it, and the verdict.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribution/roofline/loop_work.h"
#include "models/roofline/hierarchical.h"
#include "models/roofline/mansard.h"
#include "models/roofline/runtime_ceilings.h"
#include "models/roofline/sparse.h"
#include "models/roofline/verdict.h"

namespace crosstalk::attribution {

enum class RooflineModel : std::uint8_t { carm, orm, hierarchical, irm, runtime, sparse, mansard };
inline constexpr std::array<RooflineModel, 7> all_roofline_models = {
    RooflineModel::carm,    RooflineModel::orm,    RooflineModel::hierarchical, RooflineModel::irm,
    RooflineModel::runtime, RooflineModel::sparse, RooflineModel::mansard};

/// x in operations for each byte, y in operations a second. In the mansard model x is the number of other instructions
/// for each memory instruction, y instructions a cycle.
struct RooflinePoint {
  std::optional<models::Level> level;  // whose bytes x is of; absent: the model has one point
  models::roofline::Estimate x, y;
};

/// The range that reordering may change (the sparse model).
struct SparseBandPlace {
  models::roofline::Band band;
  models::roofline::BandVerdict verdict;
};

struct RooflinePlace {
  std::vector<RooflinePoint> points;            // at least one
  std::vector<models::roofline::Roof> roofs;    // that hold for it: of its threads, width and mix
  std::vector<models::roofline::Roof> machine;  // others of the machine, for comparison
  models::roofline::Verdict verdict;
  // Only some models set these:
  std::optional<models::Level> bottleneck = {};  // the level of the least bound (hierarchical, irm)
  std::optional<models::roofline::Estimate> bound = {};
  std::vector<models::roofline::FeatureCost> costs = {};  // runtime
  bool held_by_issue = false;  // of them, `independent_operations` is the time to issue an iteration, not its chain
  std::optional<models::roofline::IntensityBracket> gathers = {};  // x, if gathered elements are in a cache, or not
  std::optional<SparseBandPlace> band = {};                        // sparse
  std::optional<models::roofline::Mansard> hills = {};             // mansard
};

/// Fails with the reason why the model has no place for it: a clause with subject and verb.
[[nodiscard]] Result<RooflinePlace> place_in(RooflineModel model, const LoopWork& work, const models::Machine& machine,
                                             const RooflineOptions& options);

// One for each group of models; see `place_in`.
[[nodiscard]] Result<RooflinePlace> carm_place(const LoopWork& work, const models::Machine& machine);
/// `integrated`: by the bandwidth that the core sustains by loads, of which as much moves; else by what moves between
/// levels for its mix of loads and stores.
[[nodiscard]] Result<RooflinePlace> level_place(const LoopWork& work, const models::Machine& machine, bool integrated);
[[nodiscard]] Result<RooflinePlace> orm_place(const LoopWork& work, const models::Machine& machine,
                                              const RooflineOptions& options);
[[nodiscard]] Result<RooflinePlace> runtime_place(const LoopWork& work, const models::Machine& machine);
[[nodiscard]] Result<RooflinePlace> sparse_place(const LoopWork& work, const models::Machine& machine);
[[nodiscard]] Result<RooflinePlace> mansard_place(const LoopWork& work, const models::Machine& machine);

/// Operations a second. Fails with the reason if they are not known.
[[nodiscard]] Result<models::roofline::Estimate> rate_of(const LoopWork& work);

}  // namespace crosstalk::attribution
