// SPDX-License-Identifier: Apache-2.0
// Identifies the system call that code makes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace crosstalk::symbolizer {

/// The number in eax at the system call that ends `code`, which begins with an instruction of its function. nullopt if
/// the code before the call does not set it: the number is an argument, say.
[[nodiscard]] std::optional<std::uint32_t> system_call_number(std::span<const std::uint8_t> code);

/// "read"; empty for a number that the kernel headers of the build do not have.
[[nodiscard]] std::string system_call_name(std::uint32_t number);

}  // namespace crosstalk::symbolizer
