// SPDX-License-Identifier: Apache-2.0
// Finds code of files that the dynamic loader does not know: the program has mapped it itself, often a second time.
#pragma once

#include <cstdint>

namespace crosstalk::in_target::modules {

/// Reports those that came and went since the last look. Reads /proc/self/maps, more and more rarely if it finds
/// nothing: code that a compiler makes is in no file. `now_ns` UINT64_MAX: reads it in any case. One thread at a time;
/// normal context.
void look_for_parts(bool (*is_in_module)(std::uint64_t address), std::uint64_t now_ns);
/// True if `address` is in a reported one. Any context.
[[nodiscard]] bool is_in_part(std::uint64_t address);
/// All are reported again, to another recorder. Only while nothing is observed.
void forget_parts();

}  // namespace crosstalk::in_target::modules
