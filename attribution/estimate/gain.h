// SPDX-License-Identifier: Apache-2.0
// What would be saved if a line no longer moved between caches: the cost of communicating accesses less what the same
// code takes when the line stays in the own cache.
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
#include "attribution/model.h"
#include "attribution/objects/program_view.h"
#include "profile/model.h"
#include "profile/topology.h"
#include "symbolizer/loops/iteration_time.h"
#include "symbolizer/loops/waiting.h"

namespace crosstalk::attribution {

/// What is known of a loop that pays for communication, in its own code or in functions that it calls.
struct PayingLoop {
  double self_s = 0;                               // of its own code, all threads
  double cost_s = 0;                               // of communication
  std::optional<double> iterations;                // all of them
  Interval iterations_ci95;                        // when `iterations` is known
  std::optional<symbolizer::IterationTime> local;  // cycles of its own code, with all data in the own cache
  std::optional<double> accesses_cycles;  // where functions that it calls pay: of the accesses that do, likewise
};

/// The gain of loops, in terms of their cost C. With N iterations in the time T of the loop's own code and t0 what one
/// takes with all data in the own cache (symbolizer/loops/iteration_time.h), the loop would save T - N t0, and no more
/// than C; t0's bounds and the interval of N bound it. Where functions that it calls pay, once an iteration each, they
/// would save C - N u with u what their accesses take in the own cache; how much else they wait for is not known, so
/// the bounds are wide. Where N or t0 is not known: anything from 0 to the whole cost.
[[nodiscard]] GainPart gain_of_loop(const PayingLoop& loop, const profile::CoreTimes& core);

/// 0 for an access of a loop that only waits; where the loop may as well find at once what it looks for, 0 is likely.
[[nodiscard]] GainPart gain_of_waiting(symbolizer::Waiting waiting, const GainPart& of_loop);

/// What of a cost can be saved at all, by what the two processors share: nothing where both threads ran on one, since
/// the line never moved; little between threads of one core, whose line stays in their common first-level cache.
[[nodiscard]] GainPart gain_between(profile::Nearness nearness, const GainPart& of_loop);

/// The part of a thread's false sharing on a line for which it does not share the line truly as well: as often as it
/// does, the line moves whatever is done about the false sharing.
[[nodiscard]] double false_only(double true_seen, double false_seen);
/// Of false sharing of which that is the part.
[[nodiscard]] GainPart gain_beside_true_sharing(double only, const GainPart& part);

/// Charges no thread more than the CPU time that it has: its contributions are scaled down together. Brief threads
/// stand for each other, so they are charged no more than all of them have.
void limit_to_cpu_time(std::span<Contribution> contributions, std::span<const Stratum> strata,
                       std::span<const profile::ThreadRow> threads);

/// Gains of contributions.
class Gains {
 public:
  /// `loops` have their rates.
  Gains(const ProgramView& view, const StackTable& stacks, std::span<const LoopRow> loops,
        const profile::Session& session);
  /// Fills in `gain` of each contribution, and the parts that they name in `expansion`.
  void find(std::span<Contribution> contributions, Expansion& expansion);

 private:
  /// Which loop pays for an instruction's accesses.
  struct Payer {
    PayingLoop* loop = nullptr;  // null: none is known
    symbolizer::Waiting waiting = symbolizer::Waiting::no;
  };
  /// How often a thread was seen to consume a line, by sort.
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
