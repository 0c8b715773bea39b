// SPDX-License-Identifier: Apache-2.0
// Unpacks compressed parts of ELF files that libelf does not. Limits the sizes that a damaged file may claim.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace crosstalk::symbolizer {

/// The contents of an .xz stream; nullopt: damaged, or more than 256 MiB.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> unpack_xz(std::span<const std::uint8_t> packed);

/// The image of an ELF64 file with each section packed by zstd (ELFCOMPRESS_ZSTD) unpacked behind its end; nullopt:
/// there is none, or one is damaged.
[[nodiscard]] std::optional<std::vector<char>> with_unpacked_sections(std::span<const std::uint8_t> image);

}  // namespace crosstalk::symbolizer
