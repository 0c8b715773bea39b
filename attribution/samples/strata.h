// SPDX-License-Identifier: Apache-2.0
// Post-stratification of samples. Only some samples open a watch, and the collector does not choose them evenly (it
// prefers lines that the board knows from another thread, and takes the thread's own stack last). Similar samples form
// a stratum; within it, the watched ones represent all.
//
// A stratum is a unit of weight (of those that count accesses: loads or stores), a thread, the collector's suspicion
// and the stack flag, and the cache line of data, or its 4 KiB page, if that was watched often enough to represent
// itself (unless an estimator ignores places). If threads have too few watches of a place each, as those that live for
// a millisecond, but enough together, the place represents itself for all of them together: a line predicts a sample's
// behaviour better than a thread. Places with hardly any watches join those of the process's other threads under the
// same suspicion. If these are not watched either, suspected ones join the other suspected ones of their thread.
// Nothing joins a line with a stratum of its own, which was watched often for a reason, and suspected samples never
// join unsuspected ones: a page holds both.
//
// If samples count, the value of a store differs from that of a load before it (cost_attribution.h), and the thread's
// behaviour decides which of them finds a free watchpoint: a thread that takes a line from others ends their watch, and
// goes on to read it. If lines are probed, samples of loads are probed less often than those of stores: a load that
// waits is interrupted when it has retired, so its handler begins later, and finds another one at work more often. Both
// therefore have strata of their own.
//
// Suspicion is judged in hindsight: a line that was ever suspected counts as suspected from the first sample on. The
// collector learns while it watches, and its first watches, when it can afford most, fall on lines that it does not
// suspect yet. As unsuspected ones they would represent all the private data that is sampled later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attribution/samples/arming.h"
#include "attribution/samples/weights.h"
#include "base/hash.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// Sums over one stratum. x is a sample's weight, in `unit`.
struct Stratum {
  std::uint64_t eligible = 0, watched = 0;             // samples
  double eligible_weight = 0, eligible_weight2 = 0;    // sum of x, of x^2, over eligible samples
  double watched_weight = 0, watched_weight2 = 0;      // over watched samples
  profile::WeightUnit unit = profile::WeightUnit::ns;  // of all its samples
  bool expanded = true;                                // the watched samples stand for all
  bool suspected = false;                              // all are on lines that were ever suspected
  bool one_line = false;                               // all are on one cache line
  static constexpr std::uint32_t several = UINT32_MAX;
  std::uint32_t thread = several;  // of all samples
  /// The weight that one watched unit of weight represents; at least 1, and 0 if nothing was watched.
  [[nodiscard]] double expansion() const {
    return watched_weight > 0 ? (expanded && eligible_weight > watched_weight ? eligible_weight / watched_weight : 1.0)
                              : 0.0;
  }
};

/// Sums over all of a clock's samples.
struct SampledTime {
  double ns = 0, ns2 = 0;  // of weights, of their squares
};

/// One thread's eligible weight in one stratum, in the stratum's unit.
struct StratumShare {
  std::uint32_t thread = 0, stratum = 0;
  double weight = 0;
};

/// An estimator's treatment of samples.
struct StrataPolicy {
  enum class Of : std::uint8_t { any, loads, stores };
  Of accesses = Of::any;  // samples of other kinds neither count nor are counted as watched
  bool by_place = true;   // lines and pages that were watched often stand for themselves
  bool expanded = true;   // the watched samples stand for all; false: for themselves alone
};

/// Make it from the watches, call add() for every sample, then finish(); strata are known after that.
class Strata {
 public:
  /// Watches that a line or page of a thread needs to represent itself, and that any stratum needs. Each counts as the
  /// probability that it armed the thread to be seen: if that is 1 in 3, an event represents three. In a stratum of two
  /// such watches it would exceed the stratum and would have to be cut. The many strata without an event do not
  /// compensate for the cut, so the estimate would be too low on average.
  static constexpr std::uint32_t unit_watches = 8, least_watches = 2;

  /// Watches that a line or page needs to represent itself for several threads together. It needs more: if long-lived
  /// threads meet on many lines, a line reaches eight because its first watches have seen an exchange, and lines
  /// without one are left to represent the rest.
  static constexpr std::uint32_t common_unit_watches = 16;

  Strata(std::span<const profile::WatchRow> watches, std::span<const profile::ThreadRow> threads,
         StrataPolicy policy = {});
  /// Counts a sample if it is eligible and of a known thread.
  void add(const profile::SampleRow& sample);
  void finish();

  /// Call it after finish(). `watch` is an index into the constructor's watches; threads out of range give `none`.
  static constexpr std::uint32_t none = UINT32_MAX;
  [[nodiscard]] std::uint32_t of_watch(std::size_t watch) const;
  [[nodiscard]] const std::vector<Stratum>& all() const { return strata_; }
  /// Each thread's eligible weight in each stratum; by thread, once each.
  [[nodiscard]] const std::vector<StratumShare>& shares() const { return shares_; }
  /// All clock samples of each thread.
  [[nodiscard]] const std::vector<SampledTime>& threads() const { return threads_; }
  /// Eligible time in strata without watches: nothing is known of its communication.
  [[nodiscard]] double unwatched_ns() const { return unwatched_ns_; }
  [[nodiscard]] double eligible_ns() const { return eligible_ns_; }

 private:
  using Unit = std::uint64_t;                            // a line, a page, or `rest`: all else
  using Line = std::pair<std::uint32_t, std::uint64_t>;  // process, address
  static constexpr Unit rest = 0;
  struct Kind {  // of samples
    std::uint32_t thread = 0;
    std::uint8_t flags = 0;
    profile::WeightUnit unit = profile::WeightUnit::ns;
    bool stores = false;  // if kinds go by accesses: samples are plain stores; else they are what loads
  };
  [[nodiscard]] Kind kind_of_sample(ThreadId thread, std::uint8_t flags, profile::WeightUnit unit,
                                    AccessKind access) const;
  struct Cell {  // a kind's samples in one unit of data
    std::uint32_t kind = 0;
    Unit unit = rest;
    Stratum sums;
    double looks = 0;  // watches, each as the probability that it had armed one other thread
    std::uint32_t stratum = none;
  };
  struct Sums {  // over samples that were not suspected, of one cell and line
    std::uint64_t samples = 0;
    double weight = 0, weight2 = 0;
  };
  using Alike =
      std::tuple<std::uint32_t, std::uint8_t, profile::WeightUnit, bool, Unit>;  // process, flags, unit, stores, place
  struct Pool {                                                                  // of alike cells
    double looks = 0;
    std::uint32_t stratum = none;
  };
  [[nodiscard]] Alike alike(const Cell& cell) const;
  struct Watched {  // a watch's sample
    std::uint32_t cell = none;
    std::uint64_t address = 0;
    double weight = 0;
    double look = 0;
  };
  [[nodiscard]] bool takes(AccessKind kind) const;
  void choose_units(std::span<const profile::WatchRow> watches, const ArmingFailures& failures);
  [[nodiscard]] Unit unit_of(std::uint32_t thread, std::uint64_t address) const;
  std::uint32_t kind_of(const Kind& kind);
  std::uint32_t cell_of(const Kind& kind, std::uint64_t address);
  void note_line(std::uint32_t thread, std::uint8_t flags, std::uint64_t address);
  [[nodiscard]] std::uint32_t in_hindsight(std::uint32_t cell, std::uint64_t address);
  void settle_samples();
  void settle_watches();
  void join_common();
  void join_watched();
  void join_hardly_watched();
  void share_out();
  void join(Cell& cell, std::uint32_t stratum);
  std::uint32_t new_stratum();

  StrataPolicy policy_;
  bool by_access_;  // clock samples, too, have strata by access: lines were probed
  std::vector<SampledTime> threads_;
  std::vector<std::uint32_t> process_of_thread_;
  struct UnitHash {
    std::size_t operator()(const std::pair<std::uint32_t, Unit>& unit) const noexcept {
      return spread(unit.second ^ (std::uint64_t{unit.first} << 44U));
    }
  };
  struct LineHash {
    std::size_t operator()(const Line& line) const noexcept {
      return spread(line.second ^ (std::uint64_t{line.first} << 48U));
    }
  };
  using Units = std::unordered_set<std::pair<std::uint32_t, Unit>, UnitHash>;
  using UnitCells = std::unordered_map<std::pair<std::uint32_t, Unit>, std::uint32_t, UnitHash>;
  Units units_;                                                // (thread, unit) that stand for themselves
  Units common_units_;                                         // (process, unit) that do for all its threads together
  std::unordered_map<std::uint64_t, std::uint32_t> kind_ids_;  // (thread, flags, unit, stores)
  std::vector<Kind> kinds_;
  std::vector<std::uint32_t> rest_cells_;  // by kind
  UnitCells unit_cells_;                   // by (kind, unit)
  std::vector<Cell> cells_;
  // Lines that were ever suspected. A line stops being suspected after watches without result, also before another
  // thread is seen there, so lines that were watched in vain early are a little rarer here.
  std::unordered_set<Line, LineHash> suspected_;
  std::unordered_map<Line, Sums, LineHash> not_suspected_;  // by cell (for a process) and line
  std::vector<Watched> watched_;                            // by watch
  std::vector<Stratum> strata_;
  std::vector<StratumShare> shares_;
  double unwatched_ns_ = 0, eligible_ns_ = 0;
};

}  // namespace crosstalk::attribution
