// SPDX-License-Identifier: Apache-2.0
// The loops of an analysis in the rooflines of the machine that recorded it, by all models.
//
// A loop's rate is that of all its threads: the operations of all over the time of the thread that is in it longest.
// Its roofs are what so many threads have together. By thread, each has the rate of its own CPU time, and its roofs are
// one thread's part. A loop's intensity needs no time, because the number of iterations cancels.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/roofline/loop_work.h"
#include "attribution/roofline/place.h"
#include "models/machine.h"

namespace crosstalk::attribution {

/// A loop, or one thread of it, with its places.
struct RooflineLoop {
  LoopWork work;
  std::array<Result<RooflinePlace>, all_roofline_models.size()> places;  // or the reason why it has none
  [[nodiscard]] const LoopRow& row() const { return *work.loop; }
  [[nodiscard]] const Result<RooflinePlace>& place(RooflineModel model) const {
    return places.at(static_cast<std::size_t>(model));
  }
};

/// Loops that have no place, and the reason that they share.
struct Unplaced {
  std::string why;    // a clause with subject and verb, no full stop
  double self_s = 0;  // their own time
  std::uint64_t loops = 0;
  std::vector<std::uint32_t> ids = {};  // of them, as LoopRow::id
};

struct Roofline {
  RooflineModel model = RooflineModel::carm;
  RooflineOptions options;
  std::vector<RooflineLoop> loops;  // with a place in `model`, by own time
  std::vector<Unplaced> unplaced;   // by own time
  double placed_s = 0;              // own time of `loops`
  std::vector<std::string> notes;   // caveats, sentences
};

/// Places each loop that spends at least 30 % of its time in its own code, or in inner loops that have no place of
/// their own, for which it then stands. A loop with less is left out, because its inner loops have places. `analysis`
/// must outlive the result.
[[nodiscard]] Roofline roofline_of(const Analysis& analysis, const models::Machine& machine,
                                   RooflineModel model = RooflineModel::carm, const RooflineOptions& options = {});

}  // namespace crosstalk::attribution
