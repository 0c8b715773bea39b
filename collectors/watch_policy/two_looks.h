// SPDX-License-Identifier: Apache-2.0
// The result of a line probe: a line that was read twice while its thread stood still. Pure functions, signal-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "profile/records.h"
#include "profile/watch_settings.h"

namespace crosstalk::watch_policy {

using LineWords = std::array<std::uint64_t, profile::cache_line / sizeof(std::uint64_t)>;

struct TwoLooks {
  LineWords first{};          // the line at the first look
  std::uint64_t changed = 0;  // bit n: byte n of the line differs
  std::uint32_t gap_ns = 0;   // from the first look to the second
};

/// Bit n: byte n differs.
[[nodiscard]] constexpr std::uint64_t different_bytes(const LineWords& a, const LineWords& b) {
  std::uint64_t changed = 0;
  for (std::size_t word = 0; word < a.size(); ++word) {
    const std::uint64_t difference = a[word] ^ b[word];
    for (unsigned byte = 0; byte < sizeof difference; ++byte) {
      const bool differs = (difference >> (8 * byte) & 0xffU) != 0;
      changed |= std::uint64_t{differs ? 1U : 0U} << (word * sizeof difference + byte);
    }
  }
  return changed;
}

/// Returns the record of a probe of the line of `address` for the sample at `time_ns`. The caller fills in the rest.
[[nodiscard]] constexpr profile::LineProbe record_of(const TwoLooks& looks, std::uint64_t time_ns,
                                                     std::uint64_t address) {
  profile::LineProbe record;
  record.header.type = profile::RecordType::line_probe;
  record.time_ns = time_ns;
  record.line = address & ~(std::uint64_t{profile::cache_line} - 1);
  record.changed = looks.changed;
  record.gap_ns = looks.gap_ns;
  return record;
}

}  // namespace crosstalk::watch_policy
