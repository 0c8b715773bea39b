// SPDX-License-Identifier: Apache-2.0
#include "driver/export/gzip.h"

#include <zlib.h>

#include <algorithm>

namespace crosstalk::driver {
namespace {

constexpr int with_gzip_header = 16 + MAX_WBITS;
constexpr int usual_memory = 8;

/// Packs all of `data`, a piece at a time: zlib counts a piece's bytes in 32 bits.
bool pack(z_stream& stream, const std::string& data, std::string& packed) {
  constexpr std::size_t piece = std::size_t{1} << 30U;
  std::string buffer(std::size_t{1} << 16U, '\0');
  std::size_t begin = 0;
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0 && begin < data.size()) {
      const std::size_t bytes = std::min(piece, data.size() - begin);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + begin));  // zlib does not write there
      stream.avail_in = static_cast<uInt>(bytes);
      begin += bytes;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = deflate(&stream, begin == data.size() ? Z_FINISH : Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) {
      return false;
    }
    packed.append(buffer, 0, buffer.size() - stream.avail_out);
  }
  return true;
}

}  // namespace

Result<std::string> gzip(const std::string& data) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, with_gzip_header, usual_memory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return fail(ErrorCode::system, "the export cannot be compressed: memory runs out");
  }
  std::string packed;
  const bool done = pack(stream, data, packed);
  deflateEnd(&stream);
  return done ? Result<std::string>(std::move(packed)) : fail(ErrorCode::system, "the export cannot be compressed");
}

}  // namespace crosstalk::driver
