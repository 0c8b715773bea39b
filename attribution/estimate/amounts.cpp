// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimate/amounts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "attribution/estimate/intervals.h"
#include "attribution/estimate/probe_errors.h"
#include "base/units.h"

namespace crosstalk::attribution {
namespace {

constexpr double z95 = 1.959963984540054;
constexpr double prior_watches = 4;
constexpr double least_counted = 0.95;  // of what was seen of an amount, for its count to be known

/// The unit of the profile's samples, and their total, which no amount can exceed.
struct Totals {
  ByUnit<double> weight;
  bool has_time = true;  // costs are known
  profile::WeightUnit count =
      profile::WeightUnit::ns;  // the unit that tells how often there was communication; ns: none
  explicit Totals(std::span<const Stratum> strata) {
    ByUnit<bool> watched;
    for (const Stratum& stratum : strata) {
      weight[stratum.unit] += std::max(stratum.eligible_weight, stratum.watched_weight);
      watched[stratum.unit] = watched[stratum.unit] || stratum.watched_weight > 0;
    }
    for (const profile::WeightUnit unit : {profile::WeightUnit::micro_ops, profile::WeightUnit::accesses}) {
      if (watched[unit]) {
        count = unit;
        has_time = watched[profile::WeightUnit::ns];
      }
    }
  }
};

/// Sums of one amount within one stratum.
struct StratumSums {
  double y = 0, y2 = 0, xy = 0;
};

/// Variance of X R from the choice of watched samples.
double second_phase(const Stratum& s, const StratumSums& sums) {
  if (s.watched_weight <= 0) {
    return 0;
  }
  const auto n = static_cast<double>(s.watched);
  const double total = std::max(s.eligible_weight, s.watched_weight);
  const double ratio = sums.y / s.watched_weight;
  const double residuals = std::max(0.0, sums.y2 - 2 * ratio * sums.xy + ratio * ratio * s.watched_weight2);
  const double mean_ns = s.watched_weight / n;
  const double p = (n * std::clamp(ratio, 0.0, 1.0) + 2) / (n + 4);
  // If one event represents several, so does a possible unseen one.
  const double event = sums.xy > 0 ? std::max(1.0, sums.y2 / sums.xy) : 1;
  const double spread = (residuals / (mean_ns * mean_ns) + prior_watches * p * (event - p)) / (n - 1 + prior_watches);
  return total * total * spread / n;
}

/// An amount's part in one thread's time, over its strata.
struct ThreadPart {
  double cost = 0;              // sum of X R
  double own = 0;               // sum of R^2 X2, X2 being the sum of squared weights
  double ratio_x2 = 0, x2 = 0;  // sum of R X2, of X2
};

/// Variance from the choice of samples.
double first_phase(const ThreadPart& part, const SampledTime& thread) {
  if (thread.ns <= 0) {
    return part.own;
  }
  const double rho = part.cost / thread.ns;
  return std::max(0.0, part.own - 2 * rho * part.ratio_x2 + rho * rho * std::max(thread.ns2, part.x2));
}

/// The count of one amount: the sum of its parts in each group of communications.
class CountSums {
 public:
  CountSums() = default;
  CountSums(const CountSums&) = delete;
  CountSums& operator=(const CountSums&) = delete;
  ~CountSums() = default;

  void add(const CountTable::Place& place, double weight) {
    if (latest_ == nullptr || place.group != latest_place_.group || place.line != latest_place_.line) {
      latest_ = &seen_[place.group][place.line];
      latest_place_ = place;
    }
    *latest_ += weight;
  }

  void fill(Amount& amount, const CountTable* table) const {
    if (table == nullptr || seen_.empty()) {
      amount.count_unknown = seen_.empty() && table != nullptr ? "none was seen" : "the estimator does not count";
      return;
    }
    double counted = 0;
    double variance = 0;
    double known = 0;
    double all = 0;
    double most = 0;
    for (const auto& [id, by_line] : seen_) {
      const double seen = sum_of(by_line);
      all += seen;
      const CountGroup* group = id < table->groups.size() ? &table->groups[id] : nullptr;
      if (group != nullptr && group->count) {
        known += seen;
        const CountGroup::Part part = group->part_of(by_line);
        counted += part.value * *group->count;
        variance += std::pow(*group->count, 2) * (std::pow(part.value * group->error / z95, 2) + part.variance);
      } else if (seen > most) {
        most = seen;
        amount.count_unknown = group != nullptr ? group->unknown : "the estimator does not count";
      }
    }
    if (known < least_counted * all) {
      return;
    }
    const double half = z95 * std::sqrt(variance);
    const double rest = counted * (all / known - 1);  // uncounted: as often again, or not at all, or twice as often
    if (half + rest > most_count_error * (counted + rest)) {
      amount.count_unknown = too_little_seen;
      return;
    }
    amount.count_unknown.clear();
    amount.count = counted + rest;
    amount.count_ci95 = Interval{std::max(0.0, counted - half), counted + 2 * rest + half};
  }

 private:
  using ByLine = std::map<std::uint32_t, double>;
  static double sum_of(const ByLine& by_line) {
    double sum = 0;
    for (const auto& [line, seen] : by_line) {
      sum += seen;
    }
    return sum;
  }
  std::map<std::uint32_t, ByLine> seen_;  // by group
  // Communications come by watch, and many of one place in succession.
  double* latest_ = nullptr;  // the amount seen there
  CountTable::Place latest_place_;
};

/// Upper limits of an amount with the estimate 0, nanoseconds.
struct ZeroLimits {
  double unwitnessed = 0;  // none of it was seen
  double witnessed = 0;    // some was, by watches that stand for no time: the pair does share lines, wherever that is
};

/// One growing amount. Adds up the contributions of one watch before squaring them.
class AmountSums {
 public:
  void add(const Summand& summand, const Expansion& expansion) {
    const Contribution& c = *summand.contribution;
    if (c.watch != watch_ || !open_) {
      close_watch();
      watch_ = c.watch;
      stratum_ = c.stratum;
      x_ = c.watch_weight;
      open_ = true;
    }
    y_ += c.cost;
    errors_.add(expansion.probe_rates, c.watch, summand.cost_s * ns_per_s);
    if (c.gain < expansion.gains.size()) {
      gains_.add(summand.cost_s, expansion.gains[c.gain]);
    }
    detections_ += c.seen->weight;
    one_processor_ = one_processor_ && c.seen->producer.cpu == c.seen->consumer.cpu;
    seen_ += c.seen->expected() ? 0 : c.seen->share;
    if (expansion.counts != nullptr) {
      counts_.add(summand.place, c.seen->weight);
    }
  }

  /// `limits`: used if the amount is 0.
  [[nodiscard]] Amount finish(const Expansion& expansion, const Totals& totals, const ZeroLimits& limits) {
    close_watch();
    const double unseen_ns = detections_ > 0 ? limits.witnessed : limits.unwitnessed;
    Amount amount;
    amount.detections = detections_;
    amount.one_processor = detections_ > 0 && one_processor_;
    amount.seen = static_cast<std::uint64_t>(std::llround(seen_));
    counts_.fill(amount, expansion.counts);
    if (expansion.unknown || (expansion.zeros_unknown && detections_ <= 0)) {
      return amount;
    }
    if (totals.has_time) {
      const Sum sum = sum_of(expansion, profile::WeightUnit::ns);
      const double most_ns = totals.weight[profile::WeightUnit::ns];
      Interval ns = interval_of(sum, most_ns, unseen_ns);
      ns = errors_.widened(ns, sum.amount, most_ns, expansion.probe_rates);
      amount.cost_s = sum.amount / ns_per_s;
      amount.cost_ci95 = Interval{ns.low / ns_per_s, ns.high / ns_per_s};
      add_gain(amount, !expansion.gains.empty());
    }
    if (!expansion.count_unknown.empty()) {
      if (!amount.count) {
        amount.count_unknown = expansion.count_unknown;
      }
    } else if (is_count(totals.count) && detections_ > 0) {
      const Sum sum = sum_of(expansion, totals.count);
      amount.count = sum.amount;
      amount.count_ci95 = interval_of(sum, totals.weight[totals.count], 0);
      amount.count_unknown.clear();
    }
    return amount;
  }

 private:
  struct Sum {  // in one unit
    double amount = 0, variance = 0;
    double event = 0;  // of an unseen event that the variance does not include
  };

  static Interval interval_of(const Sum& sum, double limit, double unseen) {
    const Interval interval =
        sum.amount > 0 ? event_interval(sum.amount, sum.variance, sum.event) : Interval{0, unseen};
    return {std::min(sum.amount, interval.low), std::max(sum.amount, std::min(interval.high, limit))};
  }

  void add_gain(Amount& amount, bool known) const {
    if (!known) {
      return;
    }
    const GainPart part = gains_.part();
    amount.gain_ci95 = Interval{amount.cost_ci95->low * part.low, amount.cost_ci95->high * part.high};
    amount.gain_s = part.likely          ? std::optional(*amount.cost_s * *part.likely)
                    : *amount.cost_s > 0 ? std::nullopt
                                         : std::optional(0.0);
  }

  void close_watch() {
    if (open_ && stratum_ != Strata::none) {
      StratumSums& sums = strata_[stratum_];
      sums.y += y_;
      sums.y2 += y_ * y_;
      sums.xy += x_ * y_;
    }
    y_ = 0;
    open_ = false;
  }

  [[nodiscard]] Sum sum_of(const Expansion& expansion, profile::WeightUnit unit) const {
    Sum sum;
    std::map<std::uint32_t, ThreadPart> threads;
    for (const auto& [id, sums] : strata_) {
      const Stratum& stratum = expansion.strata[id];
      if (stratum.unit != unit) {
        continue;
      }
      sum.amount += stratum.expansion() * sums.y;
      if (!stratum.expanded) {
        sum.variance += sums.y2;  // each detection comes or does not (Poisson)
        sum.event = std::max(sum.event, sums.y > 0 ? sums.y2 / sums.y : 0);
        continue;
      }
      sum.variance += second_phase(stratum, sums);
      const double ratio = stratum.watched_weight > 0 ? sums.y / stratum.watched_weight : 0;
      const double x2 = std::max(stratum.eligible_weight2, stratum.watched_weight2);
      ThreadPart& part = threads[stratum.thread];
      part.cost += stratum.expansion() * sums.y;
      part.own += ratio * ratio * x2;
      part.ratio_x2 += ratio * x2;
      part.x2 += x2;
    }
    for (const auto& [thread, part] : threads) {
      // Strata of several threads do not share one thread's time, and counted events share none.
      const bool shares = is_time(unit) && thread < expansion.threads.size();
      sum.variance += first_phase(part, shares ? expansion.threads[thread] : SampledTime{});
    }
    return sum;
  }

  CountSums counts_;
  GainSums gains_;
  ProbeErrors errors_;
  std::map<std::uint32_t, StratumSums> strata_;
  double detections_ = 0;
  bool one_processor_ = true;
  double seen_ = 0;  // several possible producers share one
  std::uint32_t watch_ = 0, stratum_ = Strata::none;
  double x_ = 0, y_ = 0;
  bool open_ = false;
};

}  // namespace

Pair thread_pair(const SeenCommunication& seen) { return {seen.producer.thread.value, seen.consumer.thread.value}; }

Pair core_pair(const SeenCommunication& seen) { return {seen.producer.cpu, seen.consumer.cpu}; }

namespace {

/// The limits of unseen communication with known partners, by the consumers of a matrix.
class UnseenOfConsumers {
 public:
  explicit UnseenOfConsumers(const Expansion& expansion) : limits_(expansion.unseen ? &*expansion.unseen : nullptr) {}
  /// Adds a thread of `consumer`: the thread itself, or, for a processor, one that consumed there.
  void add(std::uint32_t consumer, ThreadId thread) {
    const std::pair key{consumer, thread.value};
    if (limits_ == nullptr || (!known_.empty() && key == latest_)) {
      return;
    }
    latest_ = key;
    if (known_.insert(key).second) {
      if (const ThreadLimits* limits = limits_->of(thread.value)) {
        Limits& sums = sums_[consumer];
        sums.of_true.unwitnessed += limits->of_partner.true_ns;
        sums.of_true.witnessed += limits->anywhere.true_ns;
        sums.of_false.unwitnessed += limits->of_partner.false_ns;
        sums.of_false.witnessed += limits->anywhere.false_ns;
      }
    }
  }
  struct Limits {
    ZeroLimits of_true, of_false;
  };
  [[nodiscard]] Limits of(std::uint32_t consumer) const {
    const auto found = sums_.find(consumer);
    return found != sums_.end() ? found->second : Limits{};
  }

 private:
  const UnseenLimits* limits_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> known_;
  std::pair<std::uint32_t, std::uint32_t> latest_;
  std::map<std::uint32_t, Limits> sums_;
};

/// A growing matrix.
class MatrixSums {
 public:
  MatrixSums(const Expansion& expansion, PairOf pair_of)
      : expansion_(expansion), pair_of_(pair_of), unseen_(expansion), latest_(cells_.end()) {}
  MatrixSums(const MatrixSums&) = delete;
  MatrixSums& operator=(const MatrixSums&) = delete;
  ~MatrixSums() = default;

  void add(const Summand& summand) {
    const Contribution& c = *summand.contribution;
    const Pair pair = pair_of_(*c.seen);
    if (pair.producer == pair.consumer) {
      return;
    }
    unseen_.add(pair.consumer, c.seen->consumer.thread);
    const std::pair key{pair.producer, pair.consumer};
    if (latest_ == cells_.end() || latest_->first != key) {
      latest_ = cells_.try_emplace(key).first;
    }
    Sums& sums = latest_->second;
    (c.seen->true_sharing ? sums.true_sharing : sums.false_sharing).add(summand, expansion_);
  }

  [[nodiscard]] Matrix finish() {
    const Totals totals(expansion_.strata);
    Matrix matrix;
    matrix.reserve(cells_.size());
    for (auto& [pair, sums] : cells_) {
      Cell cell;
      cell.producer = pair.first;
      cell.consumer = pair.second;
      const UnseenOfConsumers::Limits limits = unseen_.of(pair.second);
      cell.true_sharing = sums.true_sharing.finish(expansion_, totals, limits.of_true);
      cell.false_sharing = sums.false_sharing.finish(expansion_, totals, limits.of_false);
      matrix.push_back(cell);
    }
    return matrix;
  }

 private:
  struct Sums {
    AmountSums true_sharing, false_sharing;
  };
  using Cells = std::map<std::pair<std::uint32_t, std::uint32_t>, Sums>;
  const Expansion& expansion_;
  PairOf pair_of_;
  UnseenOfConsumers unseen_;
  Cells cells_;
  Cells::iterator latest_;
};

}  // namespace

Summand summand_of(const Contribution& contribution, const Expansion& expansion, double cost_s) {
  return {&contribution,
          expansion.counts != nullptr ? expansion.counts->place(contribution.watch, contribution.seen)
                                      : CountTable::Place{},
          cost_s};
}

Matrix matrix_of(std::span<const Contribution> contributions, const Expansion& expansion, PairOf pair_of) {
  MatrixSums sums(expansion, pair_of);
  for (const Contribution& c : contributions) {
    sums.add(summand_of(c, expansion, cost_s(c, expansion.strata)));
  }
  return sums.finish();
}

namespace {

/// Maps all pairs to one: the matrix has one cell or none.
Pair any_pair(const SeenCommunication& seen) { return {0, seen.producer.thread == seen.consumer.thread ? 0U : 1U}; }

}  // namespace

struct PairAmounts::Sums {
  MatrixSums cells, totals;
};

PairAmounts::PairAmounts(const Expansion& expansion, PairOf pair_of)
    : sums_(new Sums{MatrixSums(expansion, pair_of), MatrixSums(expansion, any_pair)}) {}
PairAmounts::PairAmounts(PairAmounts&&) noexcept = default;
PairAmounts::~PairAmounts() = default;

void PairAmounts::add(const Summand& summand) {
  sums_->cells.add(summand);
  sums_->totals.add(summand);
}

PairAmounts::Result PairAmounts::finish() {
  const Matrix whole = sums_->totals.finish();
  Result result{sums_->cells.finish(), {}, {}};
  if (!whole.empty()) {
    result.true_sharing = whole[0].true_sharing;
    result.false_sharing = whole[0].false_sharing;
  }
  return result;
}

double cost_s(const Contribution& contribution, std::span<const Stratum> strata) {
  if (contribution.stratum >= strata.size() || !is_time(strata[contribution.stratum].unit)) {
    return 0;
  }
  return strata[contribution.stratum].expansion() * contribution.cost / ns_per_s;
}

namespace {

using Cells = std::map<std::pair<std::uint32_t, std::uint32_t>, Cell>;

void add_invalidation(const SeenInvalidation& seen, Cells& cells) {
  const std::pair key{seen.store.thread.value, seen.read.thread.value};
  if (key.first == key.second) {
    return;
  }
  Cell& cell = cells[key];
  cell.producer = key.first;
  cell.consumer = key.second;
  Amount& amount = is_true_sharing(seen.store, seen.read) ? cell.true_sharing : cell.false_sharing;
  amount.detections += seen.weight;
  ++amount.seen;
}

}  // namespace

Matrix invalidation_matrix(std::span<const OwnershipTimeline> timelines) {
  Cells cells;
  for (const OwnershipTimeline& timeline : timelines) {
    for (const SeenInvalidation& seen : timeline.invalidations) {
      add_invalidation(seen, cells);
    }
  }
  Matrix matrix;
  for (auto& [key, cell] : cells) {
    cell.true_sharing.count_unknown = cell.false_sharing.count_unknown = "invalidations are seen, not counted";
    matrix.push_back(cell);
  }
  return matrix;
}

}  // namespace crosstalk::attribution
