// SPDX-License-Identifier: Apache-2.0
// Takes fields off the front of bytes that nobody vouches for, in the byte order of the machine that wrote them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace crosstalk {

enum class ByteOrder : std::uint8_t { little, big };

/// The integer that `bytes`, which has room for one, begins with.
template <class T>
[[nodiscard]] T integer_at(const std::byte* bytes, ByteOrder order) {
  static_assert(std::is_integral_v<T>);
  static_assert(std::endian::native == std::endian::little);
  std::byte copy[sizeof(T)];
  std::memcpy(copy, bytes, sizeof copy);
  if (order == ByteOrder::big) {
    std::reverse(copy, copy + sizeof copy);
  }
  T value{};
  std::memcpy(&value, copy, sizeof value);
  return value;
}

/// A view of an array of 64-bit numbers in the file.
class WordView {
 public:
  WordView() = default;
  /// Bytes behind the last whole number are left out.
  WordView(std::span<const std::byte> bytes, ByteOrder order) : bytes_(bytes), order_(order) {}

  [[nodiscard]] std::size_t size() const { return bytes_.size() / sizeof(std::uint64_t); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// `index` is less than size().
  [[nodiscard]] std::uint64_t operator[](std::size_t index) const {
    return integer_at<std::uint64_t>(bytes_.data() + index * sizeof(std::uint64_t), order_);
  }

 private:
  std::span<const std::byte> bytes_;
  ByteOrder order_ = ByteOrder::little;
};

/// Once a field is missing, all later ones are, too: they read as zeros, and whole() returns false.
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes, ByteOrder order = ByteOrder::little)
      : bytes_(bytes), order_(order) {}

  template <class T>
  T take() {
    const std::span<const std::byte> from = take_bytes(sizeof(T));
    return from.size() == sizeof(T) ? integer_at<T>(from.data(), order_) : T{};
  }
  std::span<const std::byte> take_bytes(std::uint64_t count) {
    if (count > bytes_.size()) {
      whole_ = false;
      bytes_ = {};
      return {};
    }
    const std::span<const std::byte> taken = bytes_.first(static_cast<std::size_t>(count));
    bytes_ = bytes_.subspan(static_cast<std::size_t>(count));
    return taken;
  }
  /// Takes `count` bytes that hold a text: returns the part before the first NUL, or all.
  std::string_view take_text(std::uint64_t count) {
    const std::span<const std::byte> from = take_bytes(count);
    const std::string_view text(reinterpret_cast<const char*>(from.data()), from.size());
    return text.substr(0, text.find('\0'));
  }
  /// Takes text up to a NUL, which must be there.
  std::string_view take_terminated_text() {
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
    const std::size_t end = text.find('\0');
    take_bytes(end == text.npos ? UINT64_MAX : end + 1);
    return end == text.npos ? std::string_view() : text.substr(0, end);
  }
  WordView take_words(std::uint64_t count) {
    constexpr std::uint64_t word = sizeof(std::uint64_t);
    if (count > bytes_.size() / word) {
      return {take_bytes(UINT64_MAX), order_};
    }
    return {take_bytes(count * word), order_};
  }

  [[nodiscard]] std::size_t rest() const { return bytes_.size(); }
  [[nodiscard]] bool whole() const { return whole_; }
  [[nodiscard]] ByteOrder order() const { return order_; }

 private:
  std::span<const std::byte> bytes_;
  ByteOrder order_;
  bool whole_ = true;
};

}  // namespace crosstalk
