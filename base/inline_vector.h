// SPDX-License-Identifier: Apache-2.0
// A vector of a few small elements without heap memory, for tables of millions of rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

namespace crosstalk {

/// Drops elements beyond `most` silently: callers check sizes.
template <class T, std::size_t most>
class InlineVector {
 public:
  static_assert(std::is_trivially_copyable_v<T> && most <= UINT8_MAX);

  constexpr InlineVector() = default;
  constexpr InlineVector(std::initializer_list<T> elements) { assign(elements.begin(), elements.end()); }

  template <class Iterator>
  constexpr void assign(Iterator begin, Iterator end) {
    size_ = 0;
    for (; begin != end; ++begin) {
      push_back(*begin);
    }
  }
  constexpr void push_back(const T& element) {
    if (size_ < most) {
      elements_[size_++] = element;
    }
  }
  /// New elements are value-initialised; sizes above `most` are cut to it.
  constexpr void resize(std::size_t size) {
    const std::size_t fitting = std::min(size, most);
    for (std::size_t i = size_; i < fitting; ++i) {
      elements_[i] = T{};
    }
    size_ = static_cast<std::uint8_t>(fitting);
  }

  [[nodiscard]] constexpr std::size_t size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }
  [[nodiscard]] constexpr T& operator[](std::size_t index) { return elements_[index]; }
  [[nodiscard]] constexpr const T& operator[](std::size_t index) const { return elements_[index]; }
  [[nodiscard]] constexpr T* begin() { return elements_.data(); }
  [[nodiscard]] constexpr T* end() { return elements_.data() + size_; }
  [[nodiscard]] constexpr const T* begin() const { return elements_.data(); }
  [[nodiscard]] constexpr const T* end() const { return elements_.data() + size_; }

 private:
  std::array<T, most> elements_{};
  std::uint8_t size_ = 0;
};

}  // namespace crosstalk
