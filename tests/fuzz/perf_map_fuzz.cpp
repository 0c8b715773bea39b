// SPDX-License-Identifier: Apache-2.0
// Text of a perf map, and questions about it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "symbolizer/elf/perf_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const crosstalk::symbolizer::PerfMap map(std::string_view(reinterpret_cast<const char*>(data), size));
  for (std::uint64_t address = 1; address != 0; address <<= 4U) {
    static_cast<void>(map.at(address));
  }
  static_cast<void>(map.at(~std::uint64_t{0}));
  return 0;
}
