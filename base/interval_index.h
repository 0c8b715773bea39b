// SPDX-License-Identifier: Apache-2.0
// Address ranges, which may overlap (memory is reused over time), with a search by address.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace crosstalk {

/// Fill it with add(), then call build() once before searches. Ranges are [begin, end); empty ones are left out.
template <class T>
class IntervalIndex {
 public:
  void add(std::uint64_t begin, std::uint64_t end, T value) {
    if (begin < end) {
      items_.push_back({begin, end, end, std::move(value)});
    }
  }

  void build() {
    std::stable_sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.begin < b.begin; });
    std::uint64_t reach = 0;
    for (Item& item : items_) {
      reach = std::max(reach, item.end);
      item.reach = reach;
    }
  }

  /// Calls `visit(value, begin, end)` for the ranges that hold `address`, the highest begin first. Visits at most
  /// `max_steps` ranges, so that damaged data (a huge range below a million small ones) costs little.
  template <class Visit>
  void covering(std::uint64_t address, Visit&& visit) const {
    auto it = std::upper_bound(items_.begin(), items_.end(), address,
                               [](std::uint64_t a, const Item& item) { return a < item.begin; });
    for (std::size_t steps = 0; it != items_.begin() && steps < max_steps; ++steps) {
      --it;
      if (it->reach <= address) {
        return;
      }
      if (address < it->end) {
        visit(it->value, it->begin, it->end);
      }
    }
  }

  /// Calls `visit(value, begin, end)` for every range, by begin.
  template <class Visit>
  void each(Visit&& visit) const {
    for (const Item& item : items_) {
      visit(item.value, item.begin, item.end);
    }
  }

 private:
  static constexpr std::size_t max_steps = 4096;
  struct Item {
    std::uint64_t begin, end;
    std::uint64_t reach;  // largest end of this and all items before it
    T value;
  };
  std::vector<Item> items_;
};

}  // namespace crosstalk
