// SPDX-License-Identifier: Apache-2.0
// A perf ring read record by record, without memory of its own: for who must not allocate. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace crosstalk::collectors {

/// Copies the record at `tail` to `out` and moves `tail` behind it; its bytes. `ring`'s size is a power of two; `head`
/// and `tail` count from its beginning and never wrap. Empty, with `tail` moved to `head`: there is none, or what is
/// there can be no record of so few bytes: the rest is given up.
[[nodiscard]] std::span<const std::byte> take_ring_record(std::span<const std::byte> ring, std::uint64_t head,
                                                          std::uint64_t& tail, std::span<std::byte> out);

}  // namespace crosstalk::collectors
