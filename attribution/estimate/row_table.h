// SPDX-License-Identifier: Apache-2.0
// Groups contributions: the costliest groups become the rows of a table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "attribution/estimate/amounts.h"

namespace crosstalk::attribution {

/// Call add() for each contribution with its group, then choose(), then add_amounts() for each contribution in the
/// estimator's order. Only rows get amounts, which take most of the work.
class RowTable {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Group {
    double cost_s = 0, detections = 0;
    std::uint32_t first = none;  // of its contributions
  };

  explicit RowTable(std::size_t groups = 0) : groups_(groups), row_of_(groups, none) {}
  /// Appends a group.
  void add_group() {
    groups_.emplace_back();
    row_of_.push_back(none);
  }
  void add(std::uint32_t group, std::size_t contribution, double cost_s, double detections) {
    Group& into = groups_[group];
    into.first = into.first == none ? static_cast<std::uint32_t>(contribution) : into.first;
    into.cost_s += cost_s;
    into.detections += detections;
  }

  /// Chooses the groups with the most cost, then the most detections, then the first in `order`; never groups without
  /// contributions.
  void choose(std::vector<std::uint32_t> order, std::size_t max_rows, const Expansion& expansion) {
    std::erase_if(order, [&](std::uint32_t group) { return groups_[group].first == none; });
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(groups_[a].cost_s, groups_[a].detections) > std::pair(groups_[b].cost_s, groups_[b].detections);
    });
    order.resize(std::min(order.size(), max_rows));
    chosen_ = std::move(order);
    amounts_.reserve(chosen_.size());
    for (std::uint32_t row = 0; row < chosen_.size(); ++row) {
      row_of_[chosen_[row]] = row;
      amounts_.emplace_back(expansion, thread_pair);
    }
  }
  [[nodiscard]] std::size_t rows() const { return chosen_.size(); }
  [[nodiscard]] std::uint32_t group_of(std::size_t row) const { return chosen_[row]; }
  [[nodiscard]] const Group& operator[](std::size_t row) const { return groups_[chosen_[row]]; }
  /// none: the group was not chosen.
  [[nodiscard]] std::uint32_t row_of(std::uint32_t group) const { return row_of_[group]; }

  void add_amounts(std::uint32_t group, const Summand& summand) {
    if (const std::uint32_t row = row_of_[group]; row != none) {
      amounts_[row].add(summand);
    }
  }
  /// The cells and the totals of a row of the report.
  template <class Row>
  void fill_amounts(std::size_t row, Row& into) {
    PairAmounts::Result amounts = amounts_[row].finish();
    into.cells = std::move(amounts.cells);
    into.true_sharing = std::move(amounts.true_sharing);
    into.false_sharing = std::move(amounts.false_sharing);
  }

 private:
  std::vector<Group> groups_;
  std::vector<std::uint32_t> row_of_;  // by group
  std::vector<std::uint32_t> chosen_;  // groups, by row
  std::vector<PairAmounts> amounts_;   // by row
};

}  // namespace crosstalk::attribution
