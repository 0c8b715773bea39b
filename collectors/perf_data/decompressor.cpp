// SPDX-License-Identifier: Apache-2.0
#include "collectors/perf_data/decompressor.h"

#include <zstd.h>

#include <string>

#include "collectors/perf_data/record_decoder.h"

namespace crosstalk::perf_data {

struct Decompressor::Stream {
  Stream() : context(ZSTD_createDCtx()) {
    if (context != nullptr) {
      // A damaged stream may ask for gigabytes to look back into; perf's own levels need no more than 128 MiB.
      constexpr int most_log = 27;
      ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, most_log);
    }
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { ZSTD_freeDCtx(context); }
  ZSTD_DCtx* context;
};

Decompressor::Decompressor(ByteOrder order) : stream_(std::make_unique<Stream>()), order_(order) {}
Decompressor::Decompressor(Decompressor&&) noexcept = default;
Decompressor& Decompressor::operator=(Decompressor&&) noexcept = default;
Decompressor::~Decompressor() = default;

Result<void> Decompressor::add(std::span<const std::byte> piece, const Take& take) {
  constexpr std::size_t step = std::size_t{1} << 17U;
  if (stream_->context == nullptr) {
    return fail(ErrorCode::system, "there is no memory to decompress with");
  }
  ZSTD_inBuffer in{piece.data(), piece.size(), 0};
  for (bool filled = true; in.pos < in.size || filled;) {
    const std::size_t before = pending_.size();
    pending_.resize(before + step);
    ZSTD_outBuffer out{pending_.data() + before, step, 0};
    const std::size_t status = ZSTD_decompressStream(stream_->context, &out, &in);
    pending_.resize(before + out.pos);
    if (ZSTD_isError(status) != 0) {
      return fail(ErrorCode::corrupt, std::string("it cannot be decompressed: ") + ZSTD_getErrorName(status));
    }
    filled = out.pos == step;
    if (Result<void> handed = hand_out(take); !handed) {
      return handed;
    }
  }
  return {};
}

Result<void> Decompressor::hand_out(const Take& take) {
  std::span<const std::byte> rest = pending_;
  while (rest.size() >= header_bytes) {
    const std::size_t size = header_of(rest, order_).bytes;
    if (size < header_bytes) {
      return fail(ErrorCode::corrupt, "a record in it has " + std::to_string(size) + " bytes");
    }
    if (size > rest.size()) {
      break;
    }
    if (Result<void> taken = take(rest.first(size)); !taken) {
      return taken;
    }
    rest = rest.subspan(size);
  }
  pending_.erase(pending_.begin(), pending_.end() - static_cast<std::ptrdiff_t>(rest.size()));
  return {};
}

}  // namespace crosstalk::perf_data
