// SPDX-License-Identifier: Apache-2.0
// The beginning of a perf.data file: its byte order, its mode, and the places of its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/byte_cursor.h"
#include "base/result.h"

namespace crosstalk::perf_data {

struct Section {
  std::uint64_t offset = 0, bytes = 0;
};

struct FeatureSection {
  std::uint32_t feature = 0;
  Section section;
};

struct FileHeader {
  ByteOrder order = ByteOrder::little;
  bool pipe = false;  // written to a pipe: records tell what sections do otherwise
  Section attributes;
  std::uint64_t attribute_bytes = 0;  // of each, with the section of its ids behind it
  Section data;
  bool cut_off = false;  // the file ends before its data or its features do: a copy of a part
  std::vector<FeatureSection> features;
};

/// Reads the header. All sections lie within the file: parts beyond its end are left out, or cut there. Errors name the
/// wrong part and offset.
[[nodiscard]] Result<FileHeader> read_file_header(std::span<const std::byte> file);

/// The bytes of a section that lies within the file.
[[nodiscard]] inline std::span<const std::byte> bytes_of(std::span<const std::byte> file, const Section& section) {
  return file.subspan(static_cast<std::size_t>(section.offset), static_cast<std::size_t>(section.bytes));
}
/// True if it lies within a file of so many bytes.
[[nodiscard]] inline bool within(const Section& section, std::uint64_t file_bytes) {
  return section.offset <= file_bytes && section.bytes <= file_bytes - section.offset;
}

}  // namespace crosstalk::perf_data
