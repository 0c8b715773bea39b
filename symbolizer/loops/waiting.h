// SPDX-License-Identifier: Apache-2.0
// Finds loops that wait for another thread, and the updates of shared words by instructions. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.h"

namespace crosstalk::symbolizer {

/// The way in which one instruction updates the word that it accesses.
enum class Update : std::uint8_t {
  none,              // it only loads, or only stores, or no memory
  plain,             // loads and stores without a lock: `inc (mem)`
  add,               // locked addition: a counter
  fetch_add,         // and takes the value that was there (xadd)
  exchange,          // locked exchange
  compare_exchange,  // locked compare and exchange
  bits,              // locked and, or, xor, bit test
};
[[nodiscard]] Update update_of(std::span<const std::uint8_t> code);

/// Tells if a loop waits for another thread's store.
enum class Waiting : std::uint8_t {
  no,
  perhaps,  // it may as well find at the first look what it looks for
  surely,   // it pauses between looks
};

/// `perhaps` and `surely` need two conditions. One way round the loop only loads from places that are the same in the
/// next iteration, or exchanges a word there (a lock that it tries to take). And one of its `decisions`, the jumps that
/// may end the loop (by their index in `way`), depends on loaded values and on none that the loop itself changes from
/// iteration to iteration: the thread stays in the loop until another thread stores, or until the loop gives up. `no`
/// for retried updates (a compare and exchange that expects the loaded value), for loops that only count, for ways that
/// load nothing, and for ways with calls.
[[nodiscard]] Waiting waits(std::span<const std::span<const std::uint8_t>> way, std::span<const std::size_t> decisions);

/// A register, and the number of its bytes that a load has filled.
struct LoadedRegister {
  Register reg = Register::rax;
  std::uint8_t bytes = 0;
};
/// The register that the plain load `load` (an index) of a way round a loop fills, if nothing else on the way writes
/// it: it then holds the last loaded value everywhere on the way.
[[nodiscard]] std::optional<LoadedRegister> loaded_register(std::span<const std::span<const std::uint8_t>> way,
                                                            std::size_t load);

}  // namespace crosstalk::symbolizer
