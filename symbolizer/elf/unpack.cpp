// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/elf/unpack.h"

#include <elf.h>
#include <lzma.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

#include "symbolizer/elf/bytes.h"

namespace crosstalk::symbolizer {
namespace {

constexpr std::uint32_t packed_by_zstd = 2;  // ELFCOMPRESS_ZSTD, younger than Debian 12's <elf.h>
constexpr std::uint64_t most_unpacked = std::uint64_t{4} << 30U;

/// Unpacks one section, described by `header`, to the end of `whole`, and updates `header`.
bool unpack_section(std::span<const std::uint8_t> image, const Elf64_Chdr& packed, std::vector<char>& whole,
                    Elf64_Shdr& header) {
  constexpr std::uint64_t most_ratio = 10'000;
  const std::uint64_t bytes = header.sh_size - sizeof packed;
  const std::size_t begin = (whole.size() + 15) / 16 * 16;
  if (packed.ch_size > most_unpacked - std::min<std::uint64_t>(begin, most_unpacked) ||
      packed.ch_size / most_ratio > bytes) {
    return false;
  }
  whole.resize(begin + packed.ch_size);
  const std::size_t got =
      ZSTD_decompress(whole.data() + begin, packed.ch_size, image.data() + header.sh_offset + sizeof packed, bytes);
  if (ZSTD_isError(got) != 0 || got != packed.ch_size) {
    return false;
  }
  header.sh_offset = begin;
  header.sh_size = packed.ch_size;
  header.sh_addralign = packed.ch_addralign;
  header.sh_flags &= ~std::uint64_t{SHF_COMPRESSED};
  return true;
}

}  // namespace

std::optional<std::vector<std::uint8_t>> unpack_xz(std::span<const std::uint8_t> packed) {
  constexpr std::uint64_t most_memory = std::uint64_t{128} << 20U;
  constexpr std::size_t most_bytes = std::size_t{256} << 20U;
  std::vector<std::uint8_t> bytes(std::max<std::size_t>(packed.size() * 4, 4096));
  while (bytes.size() <= most_bytes) {
    std::uint64_t memory = most_memory;
    std::size_t in = 0, out = 0;
    const lzma_ret result = lzma_stream_buffer_decode(&memory, 0, nullptr, packed.data(), &in, packed.size(),
                                                      bytes.data(), &out, bytes.size());
    if (result == LZMA_OK) {
      bytes.resize(out);
      return bytes;
    }
    if (result != LZMA_BUF_ERROR || out < bytes.size()) {  // not for want of room
      return std::nullopt;
    }
    bytes.resize(bytes.size() * 4);
  }
  return std::nullopt;
}

std::optional<std::vector<char>> with_unpacked_sections(std::span<const std::uint8_t> image) {
  const auto file = value_at<Elf64_Ehdr>(image, 0);
  if (!file || file->e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  std::optional<std::vector<char>> whole;
  for (std::uint64_t i = 0; i < file->e_shnum; ++i) {
    const std::uint64_t at = file->e_shoff + i * sizeof(Elf64_Shdr);
    auto header = value_at<Elf64_Shdr>(image, at);
    if (!header || (header->sh_flags & SHF_COMPRESSED) == 0 || header->sh_size < sizeof(Elf64_Chdr) ||
        header->sh_offset > image.size() || header->sh_size > image.size() - header->sh_offset) {
      continue;
    }
    const auto packed = value_at<Elf64_Chdr>(image, header->sh_offset);
    if (!packed || packed->ch_type != packed_by_zstd) {
      continue;
    }
    if (!whole) {
      whole.emplace(image.begin(), image.end());
    }
    if (!unpack_section(image, *packed, *whole, *header)) {
      return std::nullopt;
    }
    std::memcpy(whole->data() + at, &*header, sizeof *header);
  }
  return whole;
}

}  // namespace crosstalk::symbolizer
