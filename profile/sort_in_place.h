// SPDX-License-Identifier: Apache-2.0
// Sorting large rows: their keys are sorted, then each row is moved once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace crosstalk::profile {

/// Sorts by `key_of(row)`; rows of equal keys keep their order. Takes a key and an index a row of further memory.
template <class Row, class KeyOf>
void sort_in_place(std::vector<Row>& rows, KeyOf key_of) {
  if (std::is_sorted(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return key_of(a) < key_of(b); })) {
    return;
  }
  using Key = decltype(key_of(rows.front()));
  std::vector<std::pair<Key, std::size_t>> order;  // which row belongs here
  order.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    order.emplace_back(key_of(rows[i]), i);
  }
  std::sort(order.begin(), order.end());
  for (std::size_t begin = 0; begin < rows.size(); ++begin) {
    if (order[begin].second == begin) {
      continue;
    }
    Row first = std::move(rows[begin]);
    std::size_t hole = begin;
    for (std::size_t from = order[hole].second; from != begin; from = order[hole].second) {
      rows[hole] = std::move(rows[from]);
      order[hole].second = hole;
      hole = from;
    }
    rows[hole] = std::move(first);
    order[hole].second = hole;
  }
}

}  // namespace crosstalk::profile
