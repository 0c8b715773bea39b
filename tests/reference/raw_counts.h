// SPDX-License-Identifier: Apache-2.0
// The plugin's output for the resolver: counts by instruction and address, before interpretation. A text file of one
// fact a line, which ends with `end`, so that a part is never taken for the whole.
#pragma once

#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "tests/reference/code_table.h"
#include "tests/reference/counter.h"
#include "tests/reference/modules.h"

namespace crosstalk::reference {

struct RawCode {
  std::uint32_t file = no_file;
  std::uint64_t offset = 0;
  std::uint64_t executions = 0, flops = 0;
  std::uint64_t loads = 0, stores = 0, load_bytes = 0, store_bytes = 0;
  bool operator==(const RawCode&) const = default;
};

struct RawCodePair {
  CodePair pair;
  Counts counts;
};

struct RawDataPair {
  DataPair pair;
  Counts counts;
};

struct RawInvalidations {
  ThreadPair threads;
  std::uint64_t count = 0;
};

struct RawCounts {
  std::uint32_t threads = 0;
  std::uint64_t stolen_turns = 0;
  std::uint64_t quantum = 0, seed = 0;
  std::vector<std::string> files;
  std::vector<Segment> segments;
  std::vector<RawCode> codes;  // by CodeIndex
  std::vector<RawCodePair> by_code;
  std::vector<RawDataPair> by_data;
  std::vector<RawInvalidations> invalidations;
  std::vector<HeapBlock> blocks;  // by DataPair::block - 1
};

[[nodiscard]] RawCounts raw_counts(const Counter& counter, const CodeTable& codes, const ModuleTable& modules);
void write(std::ostream& out, const RawCounts& counts);
/// In place of counts: why there are none.
void write_error(std::ostream& out, const std::string& message);
/// Fails for a damaged or unfinished file, and with the message of a file that holds an error.
[[nodiscard]] Result<RawCounts> read_raw_counts(std::istream& in);

}  // namespace crosstalk::reference
