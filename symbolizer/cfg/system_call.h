// SPDX-License-Identifier: Apache-2.0
// Which system call code makes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace crosstalk::symbolizer {

/// The number in eax at the system call that ends `code`, which begins with an instruction of its function. nullopt
/// where the code before it does not say: the number is an argument, say.
[[nodiscard]] std::optional<std::uint32_t> system_call_number(std::span<const std::uint8_t> code);

/// "read"; empty for a number that this kernel's headers did not know.
[[nodiscard]] std::string system_call_name(std::uint32_t number);

}  // namespace crosstalk::symbolizer
