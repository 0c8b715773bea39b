// SPDX-License-Identifier: Apache-2.0
// Reads a perf ring record by record, without memory of its own: for callers that must not allocate. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace crosstalk::collectors {

/// Copies the record at `tail` to `out` and moves `tail` behind it; returns its bytes. `ring`'s size is a power of two;
/// `head` and `tail` count from its beginning and never wrap. Empty, with `tail` moved to `head`: there is no record,
/// or a malformed one, and the rest is given up.
[[nodiscard]] std::span<const std::byte> take_ring_record(std::span<const std::byte> ring, std::uint64_t head,
                                                          std::uint64_t& tail, std::span<std::byte> out);

}  // namespace crosstalk::collectors
