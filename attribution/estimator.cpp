// SPDX-License-Identifier: Apache-2.0
#include "attribution/estimator.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

namespace crosstalk::attribution {
namespace {

constexpr double ns_per_s = 1e9;
constexpr double z95 = 1.959963984540054;

/// Sums of one amount within one stratum.
struct StratumSums {
  double y = 0, y2 = 0, xy = 0;
};

double time_of(std::span<const Stratum> strata) {
  double ns = 0;
  for (const Stratum& stratum : strata) {
    ns += std::max(stratum.eligible_ns, stratum.watched_ns);
  }
  return ns;
}

/// One amount as it grows: contributions of one watch are put together before they are squared.
class AmountSums {
 public:
  void add(const Contribution& c) {
    if (c.watch != watch_ || !open_) {
      close_watch();
      watch_ = c.watch;
      stratum_ = c.stratum;
      x_ = c.watch_ns;
      open_ = true;
    }
    y_ += c.cost_ns;
    detections_ += c.seen->weight;
    ++seen_;
  }

  /// `limit_ns` is the time of all strata: more can not be spent.
  [[nodiscard]] Amount finish(std::span<const Stratum> strata, double limit_ns) {
    close_watch();
    Amount amount;
    amount.detections = detections_;
    amount.seen = seen_;
    double cost = 0;
    double variance = 0;
    for (const auto& [id, sums] : strata_) {
      const Stratum& stratum = strata[id];
      cost += stratum.expansion() * sums.y;
      variance += variance_of(stratum, sums);
    }
    const double half = z95 * std::sqrt(variance);
    amount.cost_s = cost / ns_per_s;
    amount.cost_ci95 =
        Interval{std::max(0.0, cost - half) / ns_per_s, std::max(cost, std::min(cost + half, limit_ns)) / ns_per_s};
    return amount;
  }

 private:
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

  static double variance_of(const Stratum& s, const StratumSums& sums) {
    if (s.watched_ns <= 0) {
      return 0;
    }
    const auto n = static_cast<double>(s.watched);
    const double total = std::max(s.eligible_ns, s.watched_ns);
    const double ratio = sums.y / s.watched_ns;
    const double residuals = std::max(0.0, sums.y2 - 2 * ratio * sums.xy + ratio * ratio * s.watched_ns2);
    const double unseen = 1 - std::min(1.0, n / static_cast<double>(std::max<std::uint64_t>(s.eligible, 1)));
    const double by_residuals = n > 1 ? residuals / (n - 1) * n / (s.watched_ns * s.watched_ns) : 1.0;
    const double p = (n * std::clamp(ratio, 0.0, 1.0) + 2) / (n + 4);
    const double floor = p * (1 - p) / (n + 4);
    const double first_phase = ratio * ratio * std::max(s.eligible_ns2, s.watched_ns2);
    return first_phase + unseen * total * total * std::max(by_residuals, floor);
  }

  std::map<std::uint32_t, StratumSums> strata_;
  double detections_ = 0;
  std::uint64_t seen_ = 0;
  std::uint32_t watch_ = 0, stratum_ = Strata::none;
  double x_ = 0, y_ = 0;
  bool open_ = false;
};

/// Appends one watch's contributions.
void charge(const Evidence& evidence, std::uint32_t watch, std::vector<Contribution>& out) {
  const auto consumed = [&](const SeenCommunication& seen) { return seen.consumer.thread == evidence.thread; };
  const bool any_own = std::any_of(evidence.communications.begin(), evidence.communications.end(), consumed);
  double total = 0;
  double least = 0;
  for (const SeenCommunication& seen : evidence.communications) {
    if (!any_own || consumed(seen)) {
      total += seen.weight;
      least = least == 0 ? seen.weight : std::min(least, seen.weight);
    }
  }
  for (const SeenCommunication& seen : evidence.communications) {
    const bool charged = (!any_own || consumed(seen)) && total > 0;
    const double cost = charged ? evidence.cpu_ns * least * seen.weight / total : 0;
    out.push_back({&seen, watch, evidence.stratum, evidence.cpu_ns, cost});
  }
}

struct ThreadTime {
  double charged_ns = 0, limit_ns = 0;
};

/// Scales down what is charged to more than there is of a thread's time; `thread_of` says whose a contribution is.
template <class ThreadOf>
void keep_within(std::vector<Contribution>& contributions, std::span<const Stratum> strata,
                 std::map<std::uint32_t, ThreadTime> times,  // NOLINT(performance-unnecessary-value-param): changed
                 ThreadOf thread_of) {
  for (const Contribution& c : contributions) {
    times[thread_of(c)].charged_ns += strata[c.stratum].expansion() * c.cost_ns;
  }
  for (Contribution& c : contributions) {
    const ThreadTime& time = times[thread_of(c)];
    const bool over = time.limit_ns > 0 && time.charged_ns > time.limit_ns;
    c.cost_ns *= over ? time.limit_ns / time.charged_ns : 1;
  }
}

/// No thread's samples stand for more than its time, and no thread has consumed for longer than it ran: what is seen
/// of others is charged to them by chance, too.
void keep_within_time(std::vector<Contribution>& contributions, std::span<const Stratum> strata) {
  std::map<std::uint32_t, ThreadTime> times;
  for (const Stratum& stratum : strata) {
    times[stratum.thread].limit_ns += std::max(stratum.eligible_ns, stratum.watched_ns);
  }
  keep_within(contributions, strata, times, [&](const Contribution& c) { return strata[c.stratum].thread; });
  // Time in strata of several threads may be any thread's.
  const double anyones = times.contains(Stratum::several) ? times[Stratum::several].limit_ns : 0;
  for (auto& [thread, time] : times) {
    time.limit_ns += thread != Stratum::several ? anyones : 0;
  }
  keep_within(contributions, strata, times, [](const Contribution& c) { return c.seen->consumer.thread.value; });
}

struct Named {
  std::string_view name;
  Estimator estimator;
};
constexpr std::array<Named, 2> estimators = {{{"automatic", post_stratified}, {"post_stratified", post_stratified}}};

}  // namespace

std::vector<Contribution> post_stratified(std::span<const Evidence> evidence, std::span<const Stratum> strata) {
  std::vector<Contribution> result;
  for (std::size_t i = 0; i < evidence.size(); ++i) {
    if (evidence[i].stratum < strata.size()) {
      charge(evidence[i], static_cast<std::uint32_t>(i), result);
    }
  }
  keep_within_time(result, strata);
  return result;
}

Result<Estimator> find_estimator(std::string_view name) {
  std::string names;
  for (const Named& named : estimators) {
    if (named.name == name) {
      return named.estimator;
    }
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  return fail(ErrorCode::invalid_argument,
              "there is no estimator called '" + std::string(name) + "'; choose one of: " + names);
}

Pair thread_pair(const SeenCommunication& seen) { return {seen.producer.thread.value, seen.consumer.thread.value}; }

Pair core_pair(const SeenCommunication& seen) { return {seen.producer.cpu, seen.consumer.cpu}; }

Matrix matrix_of(std::span<const Contribution> contributions, std::span<const Stratum> strata, PairOf pair_of) {
  struct Sums {
    AmountSums true_sharing, false_sharing;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sums> cells;
  for (const Contribution& c : contributions) {
    const Pair pair = pair_of(*c.seen);
    if (pair.producer != pair.consumer) {
      Sums& sums = cells[{pair.producer, pair.consumer}];
      (c.seen->true_sharing ? sums.true_sharing : sums.false_sharing).add(c);
    }
  }
  const double limit_ns = time_of(strata);
  Matrix matrix;
  matrix.reserve(cells.size());
  for (auto& [pair, sums] : cells) {
    Cell cell;
    cell.producer = pair.first;
    cell.consumer = pair.second;
    cell.true_sharing = sums.true_sharing.finish(strata, limit_ns);
    cell.false_sharing = sums.false_sharing.finish(strata, limit_ns);
    matrix.push_back(cell);
  }
  return matrix;
}

double cost_s(const Contribution& contribution, std::span<const Stratum> strata) {
  if (contribution.stratum >= strata.size()) {
    return 0;
  }
  return strata[contribution.stratum].expansion() * contribution.cost_ns / ns_per_s;
}

double total_cost_s(std::span<const Contribution> contributions, std::span<const Stratum> strata) {
  double sum = 0;
  for (const Contribution& c : contributions) {
    sum += cost_s(c, strata);
  }
  return sum;
}

Matrix invalidation_matrix(std::span<const SeenInvalidation> invalidations) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Cell> cells;
  for (const SeenInvalidation& seen : invalidations) {
    const std::pair key{seen.store.thread.value, seen.read.thread.value};
    if (key.first == key.second) {
      continue;
    }
    Cell& cell = cells[key];
    cell.producer = key.first;
    cell.consumer = key.second;
    Amount& amount = seen.store.bytes.overlaps(seen.read.bytes) ? cell.true_sharing : cell.false_sharing;
    amount.detections += seen.weight;
    ++amount.seen;
  }
  Matrix matrix;
  for (auto& [key, cell] : cells) {
    matrix.push_back(cell);
  }
  return matrix;
}

}  // namespace crosstalk::attribution
