// SPDX-License-Identifier: Apache-2.0
// The savings if a line no longer moved between caches: the cost of communicating accesses less the time of the same
// code with the line in the own cache.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "attribution/estimate/evidence.h"
#include "attribution/estimate/gain_part.h"
#include "attribution/loops/loop_progress.h"
#include "attribution/model/model.h"
#include "attribution/program/program_view.h"
#include "profile/model.h"
#include "profile/topology.h"
#include "symbolizer/loops/iteration_time.h"
#include "symbolizer/loops/waiting.h"

namespace crosstalk::attribution {

/// A loop that pays for communication, in its own code or in functions that it calls.
struct PayingLoop {
  double self_s = 0;                               // of its own code, all threads
  double cost_s = 0;                               // of communication
  std::optional<double> iterations;                // all of them
  Interval iterations_ci95;                        // when `iterations` is known
  std::optional<symbolizer::IterationTime> local;  // cycles of its own code, with all data in the own cache
  std::optional<double> accesses_cycles;           // of paying accesses in functions that it calls, likewise
};

/// The gain of loops, as a part of their cost C. With N iterations in the time T of the loop's own code, and t0 the
/// time of one with all data in the own cache (symbolizer/loops/iteration_time.h), the loop would save T - N t0, and at
/// most C; t0's bounds and the interval of N bound it. If functions that it calls pay, once an iteration each, they
/// would save C - N u with u the time of their accesses in the own cache; their other waits are not known, so the
/// bounds are wide. If N or t0 is not known: anything from 0 to the whole cost.
[[nodiscard]] GainPart gain_of_loop(const PayingLoop& loop, const profile::CoreTimes& core);

/// 0 for an access of a loop that only waits. 0 is likely for a loop that may find at once what it looks for.
[[nodiscard]] GainPart gain_of_waiting(symbolizer::Waiting waiting, const GainPart& of_loop);

/// The savings by the caches that two processors share: none if both threads ran on one, since the line never moved;
/// little between threads of one core, whose line stays in their common first-level cache.
[[nodiscard]] GainPart gain_between(profile::Nearness nearness, const GainPart& of_loop);

/// The part of a thread's false sharing on a line beyond its true sharing there: as often as it shares truly, the line
/// moves even without the false sharing.
[[nodiscard]] double false_only(double true_seen, double false_seen);
/// The gain of false sharing with the part false_only().
[[nodiscard]] GainPart gain_beside_true_sharing(double only, const GainPart& part);

/// Scales a thread's contributions down together to at most its CPU time. Brief threads represent each other, so their
/// limit is the time of all of them.
void limit_to_cpu_time(std::span<Contribution> contributions, std::span<const Stratum> strata,
                       std::span<const profile::ThreadRow> threads);

/// Gains of contributions.
class Gains {
 public:
  /// `loops` must have their rates.
  Gains(const ProgramView& view, const StackTable& stacks, std::span<const LoopRow> loops,
        const profile::Session& session);
  /// Fills in `gain` of each contribution, and the parts that these refer to in `expansion`.
  void find(std::span<Contribution> contributions, Expansion& expansion);

 private:
  /// The loop that pays for an instruction's accesses.
  struct Payer {
    PayingLoop* loop = nullptr;  // null: none is known
    symbolizer::Waiting waiting = symbolizer::Waiting::no;
  };
  /// The times that a thread was seen to consume a line, by sort.
  struct Seen {
    double true_sharing = 0, false_sharing = 0;
  };
  using Code = std::pair<std::uint32_t, std::uint64_t>;  // file and address
  [[nodiscard]] const Payer& payer_of(const AccessPoint& consumer);
  void find_payer(const AccessPoint& consumer, ModulePlace place, Payer& payer);
  [[nodiscard]] PayingLoop* loop_at(ModulePlace place, bool called);
  [[nodiscard]] PayingLoop read_loop(const LoopPlace& place) const;
  [[nodiscard]] GainPart part_of(const Payer& payer, profile::Nearness nearness, double only_false) const;
  [[nodiscard]] double cycles_of_access(ModulePlace place) const;

  const ProgramView& view_;
  const StackTable& stacks_;
  std::span<const LoopRow> rows_;
  profile::CoreTimes core_;
  profile::Topology topology_;
  std::map<Code, Payer> payers_;
  std::map<std::pair<LoopPlace, bool>, PayingLoop> loops_;  // by place, and whether what it calls pays
};

}  // namespace crosstalk::attribution
