// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

namespace crosstalk::daemon {

/// Values for the arena's slots, of which a session uses few: grows up to the highest index that is written to.
/// References last.
template <class T>
class SlotTable {
 public:
  [[nodiscard]] T& operator[](std::uint32_t index) {
    if (index >= slots_.size()) {
      slots_.resize(index + std::size_t{1});
    }
    return slots_[index];
  }
  [[nodiscard]] const T& operator[](std::uint32_t index) const {
    static const T initial{};
    return index < slots_.size() ? slots_[index] : initial;
  }
  [[nodiscard]] auto begin() { return slots_.begin(); }
  [[nodiscard]] auto end() { return slots_.end(); }
  [[nodiscard]] auto begin() const { return slots_.begin(); }
  [[nodiscard]] auto end() const { return slots_.end(); }

 private:
  std::deque<T> slots_;
};

}  // namespace crosstalk::daemon
