// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace crosstalk::symbolizer {

/// True if the value that the first instruction of `code` loads is stored back soon: `++counter` compiles into a load,
/// an addition and a store. Searches the straight-line code behind it for a store to the same operand with unchanged
/// address registers. True of an instruction that loads and stores itself.
[[nodiscard]] bool is_stored_back(std::span<const std::uint8_t> code);

}  // namespace crosstalk::symbolizer
