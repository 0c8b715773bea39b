// SPDX-License-Identifier: Apache-2.0
// Loops that wait for another thread, and what an instruction does to a word that threads share. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/registers.h"

namespace crosstalk::symbolizer {

/// How one instruction updates the word that it accesses.
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

/// Whether a loop waits for another thread's store.
enum class Waiting : std::uint8_t {
  no,
  perhaps,  // it may as well find at the first look what it looks for
  surely,   // it pauses between looks
};

/// `perhaps` and `surely`: one way round a loop does nothing with memory but load from places that are the same the
/// next time round, or exchange a word there (a lock that it tries to take), and one of its `decisions`, the jumps that
/// may end the loop (by their index in `way`), goes by what was loaded and by no value that the loop itself changes
/// from iteration to iteration: whoever goes this way goes it until another thread stores, or until the loop gives up.
/// `no` for updates that are tried again (a compare and exchange that expects what was loaded), for loops that only
/// count, for ways that load nothing, and for ways with calls.
[[nodiscard]] Waiting waits(std::span<const std::span<const std::uint8_t>> way, std::span<const std::size_t> decisions);

/// A register, and how many of its bytes a load has filled.
struct LoadedRegister {
  Register reg = Register::rax;
  std::uint8_t bytes = 0;
};
/// The register that the plain load `load` (an index) of a way round a loop fills, if nothing else on the way writes
/// it: it holds what was loaded last, wherever on the way a thread is.
[[nodiscard]] std::optional<LoadedRegister> loaded_register(std::span<const std::span<const std::uint8_t>> way,
                                                            std::size_t load);

}  // namespace crosstalk::symbolizer
