// SPDX-License-Identifier: Apache-2.0
// Compressed records hold pieces of one zstd stream, which holds records: of one as many as there are, and parts.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/byte_cursor.h"
#include "base/result.h"

namespace crosstalk::perf_data {

/// Needs the room of one record and a piece of the stream, for any stream.
class Decompressor {
 public:
  explicit Decompressor(ByteOrder order);
  Decompressor(Decompressor&&) noexcept;
  Decompressor& operator=(Decompressor&&) noexcept;
  ~Decompressor();

  /// Calls `take` for each record that the next piece of the stream completes; its bytes are valid within the call. An
  /// error of `take` is passed on.
  using Take = std::function<Result<void>(std::span<const std::byte> record)>;
  [[nodiscard]] Result<void> add(std::span<const std::byte> piece, const Take& take);
  /// Bytes of a record that no piece has completed.
  [[nodiscard]] std::size_t incomplete() const { return pending_.size(); }

 private:
  [[nodiscard]] Result<void> hand_out(const Take& take);

  struct Stream;
  std::unique_ptr<Stream> stream_;
  ByteOrder order_;
  std::vector<std::byte> pending_;
};

}  // namespace crosstalk::perf_data
