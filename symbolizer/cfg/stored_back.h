// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace crosstalk::symbolizer {

/// Is what the first instruction of `code` loads stored to soon, as `++counter` is compiled into a load, an addition
/// and a store? Looks at the instructions that lie behind it, as far as they follow each other, for a store to the same
/// operand whose registers nobody has changed since. True of an instruction that loads and stores itself.
[[nodiscard]] bool is_stored_back(std::span<const std::uint8_t> code);

}  // namespace crosstalk::symbolizer
