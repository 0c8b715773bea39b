// SPDX-License-Identifier: Apache-2.0
#include "attribution/gain_limits.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace crosstalk::attribution {
namespace {

/// CPU time of the paying threads. Brief ones represent each other: any of them pays with the time of all.
class Payers {
 public:
  explicit Payers(const std::vector<ThreadSummary>& threads) {
    for (const ThreadSummary& thread : threads) {
      (thread.brief ? brief_ : others_).insert({thread.index, thread.cpu_s});
    }
  }
  /// The time of all consumers of `cells`; nullopt: the time of one is not known.
  [[nodiscard]] std::optional<double> time_of(const Matrix& cells) const {
    std::set<std::uint32_t> consumers;
    for (const Cell& cell : cells) {
      consumers.insert(cell.consumer);
    }
    return time_of(consumers);
  }
  [[nodiscard]] std::optional<double> time_of(const std::set<std::uint32_t>& consumers) const {
    bool any_brief = false;
    double sum_s = 0;
    const auto add = [&](const std::optional<double>& cpu_s) {
      sum_s += cpu_s.value_or(0);
      return cpu_s.has_value();
    };
    bool known = true;
    for (const std::uint32_t consumer : consumers) {
      if (brief_.contains(consumer)) {
        any_brief = true;
        continue;
      }
      const auto found = others_.find(consumer);
      known = known && found != others_.end() && add(found->second);
    }
    for (const auto& [thread, cpu_s] : brief_) {
      known = known && (!any_brief || add(cpu_s));
    }
    return known ? std::optional(sum_s) : std::nullopt;
  }

 private:
  std::map<std::uint32_t, std::optional<double>> others_, brief_;  // by thread
};

void limit(Amount& amount, const std::optional<double>& payers_s) {
  amount.payers_s = payers_s;
  const auto cap = [&](std::optional<Interval>& interval, const std::optional<double>& estimate) {
    if (payers_s && interval) {
      const double most = std::max(*payers_s, estimate.value_or(0));
      interval = Interval{std::min(interval->low, most), std::min(interval->high, most)};
    }
  };
  cap(amount.cost_ci95, amount.cost_s);
  cap(amount.gain_ci95, amount.gain_s);
  if (amount.gain_ci95 && amount.cost_ci95) {
    const double most = amount.cost_ci95->high;  // a gain is a part of its cost
    amount.gain_ci95 = Interval{std::min(amount.gain_ci95->low, most), std::min(amount.gain_ci95->high, most)};
  }
}

void limit_cells(Matrix& cells, const Payers& payers) {
  for (Cell& cell : cells) {
    const std::optional<double> payers_s = payers.time_of(std::set{cell.consumer});
    limit(cell.true_sharing, payers_s);
    limit(cell.false_sharing, payers_s);
  }
}

template <typename Row>
void limit_rows(std::vector<Row>& rows, const Payers& payers) {
  for (Row& row : rows) {
    const std::optional<double> payers_s = payers.time_of(row.cells);
    limit(row.true_sharing, payers_s);
    limit(row.false_sharing, payers_s);
    limit_cells(row.cells, payers);
  }
}

void limit_cost(UnseenCost& unseen, double left_s) {
  const double most_s = std::max(left_s, 0.0);
  unseen = {std::min(unseen.true_s, most_s), std::min(unseen.false_s, most_s)};
}

}  // namespace

void limit_unseen(Communication& communication, const std::vector<ThreadSummary>& threads) {
  if (!communication.unseen) {
    return;
  }
  const Payers payers(threads);
  std::set<std::uint32_t> all;
  for (const ThreadSummary& thread : threads) {
    all.insert(thread.index);
  }
  double seen_s = 0;
  std::map<std::uint32_t, double> seen_by_s;
  for (const Cell& cell : communication.cells) {
    seen_s += cell.cost();
    seen_by_s[cell.consumer] += cell.cost();
  }
  if (const auto all_s = payers.time_of(all)) {
    limit_cost(communication.unseen->cost, *all_s - seen_s);
  }
  for (UnseenOfConsumer& row : communication.unseen->consumers) {
    if (const auto its_s = payers.time_of(std::set{row.consumer})) {
      limit_cost(row.cost, *its_s - seen_by_s[row.consumer]);
    }
  }
}

void limit_gains(Communication& communication, const std::vector<ThreadSummary>& threads) {
  const Payers payers(threads);
  const std::optional<double> all_s = payers.time_of(communication.cells);
  limit(communication.true_sharing, all_s);
  limit(communication.false_sharing, all_s);
  limit_cells(communication.cells, payers);
  limit_rows(communication.lines, payers);
  limit_rows(communication.line_pairs, payers);
  limit_rows(communication.objects, payers);
}

void limit_gains(std::vector<FunctionCode>& code, const std::vector<ThreadSummary>& threads) {
  const Payers payers(threads);
  for (FunctionCode& function : code) {
    limit_rows(function.instructions, payers);
  }
}

}  // namespace crosstalk::attribution
