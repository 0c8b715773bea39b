// SPDX-License-Identifier: Apache-2.0
// Decodes the bytes of one record: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/byte_cursor.h"
#include "base/result.h"
#include "collectors/perf_data/events.h"
#include "collectors/perf_data/records.h"

namespace crosstalk::perf_data {

inline constexpr std::size_t header_bytes = 8;

struct RecordHeader {
  std::uint32_t type = 0;
  std::uint16_t misc = 0;
  std::uint16_t bytes = 0;  // of the whole record
};

/// `bytes` has room for one.
[[nodiscard]] RecordHeader header_of(std::span<const std::byte> bytes, ByteOrder order);

/// A record that is whole, header included. Errors name the place and the record.
[[nodiscard]] Result<Record> decode_record(std::span<const std::byte> bytes, ByteOrder order, const Events& events,
                                           const Place& place);

/// An entry of the feature of build ids: a HEADER_BUILD_ID whose type may not be set.
[[nodiscard]] Result<Record> decode_build_id(std::span<const std::byte> bytes, ByteOrder order, const Place& place);

/// Returns its time, without decoding the rest: 0 if it has none, or is too short.
[[nodiscard]] std::uint64_t time_of_record(std::span<const std::byte> bytes, ByteOrder order, const Events& events);

/// The fields of a sample, behind its header; nothing when they are more than the record has.
[[nodiscard]] std::optional<Sample> decode_sample(ByteCursor fields, const Attribute& attribute, Identity& identity);

/// "at offset 0x1f0, record MMAP2: ".
[[nodiscard]] std::string place_in_words(const Place& place, std::uint32_t type);
[[nodiscard]] tl::unexpected<Error> corrupt_at(const Place& place, std::uint32_t type, const std::string& what);

}  // namespace crosstalk::perf_data
