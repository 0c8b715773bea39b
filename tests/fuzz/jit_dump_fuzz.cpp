// SPDX-License-Identifier: Apache-2.0
// Bytes of a jitdump, and questions about it.
#include <cstddef>
#include <cstdint>

#include "symbolizer/elf/jit_dump.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto dump = crosstalk::symbolizer::JitDump::parse({data, size});
  if (dump) {
    for (std::uint64_t address = 1; address != 0; address <<= 4U) {
      static_cast<void>(dump->at(address, address));
    }
    static_cast<void>(dump->at(~std::uint64_t{0}, 0));
  }
  return 0;
}
