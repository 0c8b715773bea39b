// SPDX-License-Identifier: Apache-2.0
// A line probe: a line that is read twice while its thread stands still. Signal-safe, without state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

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

/// Looks at the line twice, about `gap_ns` apart, and spins in between: sleeping would change the state that other
/// threads see. `read` fills in the words, false: it cannot; `now` is a clock in nanoseconds. Returns nothing if the
/// line could not be read.
template <class Read, class Now>
[[nodiscard]] std::optional<TwoLooks> look_twice(const Read& read, const Now& now, std::uint32_t gap_ns) {
  // A look is at the middle of its reading: entering and leaving the kernel takes longer than the shortest gaps.
  const auto look = [&](LineWords& words) -> std::uint64_t {
    const std::uint64_t begin_ns = now();
    return read(words) ? begin_ns + (now() - begin_ns) / 2 : 0;
  };
  TwoLooks looks;
  LineWords second{};
  const std::uint64_t first_ns = look(looks.first);
  if (first_ns == 0) {
    return std::nullopt;
  }
  for (const std::uint64_t begin_ns = now(); now() - begin_ns < gap_ns;) {
    __builtin_ia32_pause();
  }
  const std::uint64_t second_ns = look(second);
  if (second_ns == 0) {
    return std::nullopt;
  }
  const std::uint64_t passed_ns = second_ns - first_ns;
  looks.changed = different_bytes(looks.first, second);
  looks.gap_ns = passed_ns < UINT32_MAX ? static_cast<std::uint32_t>(passed_ns) : UINT32_MAX;
  return looks;
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
