// SPDX-License-Identifier: Apache-2.0
#pragma once
// A sample of 200 us at a word of a simulated line.

#include "tests/simulation/watching.h"

namespace crosstalk::simulation {

inline profile::SampleRow sample_at(std::uint32_t thread, std::uint32_t line, std::uint32_t word, std::uint64_t time_ns,
                                    AccessKind kind = AccessKind::load) {
  profile::SampleRow row;
  row.thread = ThreadId{thread};
  row.time_ns = time_ns;
  row.cpu_ns = 200'000;
  row.address = address_of(line) + word * word_bytes;
  row.width = word_bytes;
  row.access = kind;
  row.from = profile::AddressFrom::retired;
  return row;
}

}  // namespace crosstalk::simulation
