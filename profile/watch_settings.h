// SPDX-License-Identifier: Apache-2.0
// Options of the watch policy (collectors/watch_policy/).
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::profile {

// The number of lines that the bulletin board of a process remembers: a power of two.
inline constexpr std::uint32_t board_slots_least = 16;
inline constexpr std::uint32_t board_slots_most = 16384;

/// The way to detect communication: watchpoints, or probes of lines (collectors/in_target/probe/).
enum class Method : std::uint32_t { none = 0, watch = 1, probe = 2 };

/// The way to find the partner of a sampled access: it decides which samples begin a watch.
enum class Partner : std::uint32_t { automatic = 0, board = 1, next_access = 2, next_store = 3 };

/// Other threads armed for one watch at most: arming one takes some 10 us. Of more, so many are drawn at random.
inline constexpr std::uint32_t most_armed = 24;

/// Bytes of a line that moves between caches. A watch covers words of one line.
inline constexpr std::size_t cache_line = 64;

}  // namespace crosstalk::profile
