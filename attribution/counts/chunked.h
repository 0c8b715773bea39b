// SPDX-License-Identifier: Apache-2.0
// A sequence that grows by blocks without copying, so it takes hardly more memory than its elements.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace crosstalk::attribution {

template <class T>
class Chunked {
 public:
  void push_back(const T& value) {
    const std::size_t at = size_ % chunk_size;
    if (at == 0) {
      chunks_.push_back(std::make_unique<Chunk>());
    }
    (*chunks_.back())[at] = value;
    ++size_;
  }
  [[nodiscard]] const T& operator[](std::size_t index) const {
    return (*chunks_[index / chunk_size])[index % chunk_size];
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  static constexpr std::size_t chunk_size = 512;
  using Chunk = std::array<T, chunk_size>;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace crosstalk::attribution
