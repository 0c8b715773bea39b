// SPDX-License-Identifier: Apache-2.0
// The work of a loop as roofline models take it: amounts of one iteration, its time, and the machine's roofs for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribution/busy/loop_figures.h"
#include "attribution/model/model.h"
#include "models/machine.h"
#include "models/roofline/ceilings.h"
#include "models/roofline/loop_point.h"
#include "models/roofline/machine_roofs.h"

namespace crosstalk::attribution {

/// The operations that are counted: floating point of both precisions, of one, or on whole numbers.
enum class CountedOperations : std::uint8_t { floating, fp64, fp32, integer };
/// "flop", or "op" for whole numbers.
[[nodiscard]] const char* operation_unit(CountedOperations ops);

struct RooflineOptions {
  CountedOperations ops = CountedOperations::floating;
  bool by_thread = false;                     // a place for each thread of a loop, else one for all together
  std::optional<std::uint32_t> threads = {};  // that roofs are for; absent: as many as execute the loop
  /// Draws the ceilings of imbalance below the roof's other ceilings, or below the roof; absent: only the measured one.
  std::optional<models::roofline::ImbalanceOrder> imbalance = {};
};

/// A loop, or one thread of it.
struct LoopWork {
  const LoopRow* loop = nullptr;
  const LoopThread* thread = nullptr;  // null: all together
  double own_s = 0;                    // its own time
  CountedOperations ops = CountedOperations::floating;
  models::roofline::LoopPoint point;  // of one iteration of one thread; the elapsed time is that of all
  models::FlopMix mix;                // of the counted operations
  std::vector<models::roofline::IntegerWork> integers;
  models::Precision precision = models::Precision::double_precision;  // of most of them
  models::roofline::AccessKind accesses;
  models::roofline::RoofThreads threads;
  std::uint32_t members = 1;  // threads that execute it
  double at_work = 1;         // of them, at a time: the sum of their times over the longest
  double at_most = 1;         // of them, so many have a processor at a time
  [[nodiscard]] const LoopFigures& figures() const { return *loop->figures; }
  /// Threads that share its work so unevenly that this limits it.
  [[nodiscard]] bool unbalanced() const { return at_most > 1 && at_work < 0.8 * at_most; }
};

/// Fails with the reason why the loop has no place in any roofline: a clause with subject and verb.
[[nodiscard]] Result<LoopWork> work_of_loop(const LoopRow& loop, const models::Machine& machine,
                                            const RooflineOptions& options);
/// The same for one of its threads; its roofs are one thread's part.
[[nodiscard]] Result<LoopWork> work_of_thread(const LoopRow& loop, const LoopThread& thread,
                                              const models::Machine& machine, const RooflineOptions& options);

/// The roof of its mix of operations. Fails if the calibration lacks it, or without operations.
[[nodiscard]] Result<models::roofline::Roof> compute_roof_of(const LoopWork& work, const models::Machine& machine);

}  // namespace crosstalk::attribution
