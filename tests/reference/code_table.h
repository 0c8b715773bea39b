// SPDX-License-Identifier: Apache-2.0
// The instructions and straight blocks of a program that the emulator has translated, each once even if translated
// again, with their counts. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "tests/reference/counter.h"
#include "tests/reference/instruction.h"

namespace crosstalk::reference {

inline constexpr std::uint32_t no_file = UINT32_MAX;

struct Code {
  CodeIndex index = 0;
  std::uint32_t file = no_file;  // ModuleTable::files(); no_file: written by the program itself
  std::uint64_t offset = 0;      // in the file, or address
  InstructionFacts facts;
  std::uint64_t loads = 0, stores = 0;            // accesses
  std::uint64_t load_bytes = 0, store_bytes = 0;  // bytes
};

/// Code that runs from its first instruction to its last without a jump.
struct Block {
  std::vector<Code*> codes;
  std::uint64_t executions = 0;
};

class CodeTable {
 public:
  /// Returns the instruction with these bytes at that place; the reference stays valid.
  Code& code(std::uint32_t file, std::uint64_t offset, std::span<const std::uint8_t> bytes);
  Block& block(const std::vector<Code*>& codes);

  [[nodiscard]] const std::deque<Code>& codes() const { return codes_; }
  /// Returns the executions of each instruction: those of the blocks that hold it.
  [[nodiscard]] std::vector<std::uint64_t> executions() const;

 private:
  struct Key {
    std::uint32_t file;
    std::uint64_t offset;
    std::vector<std::uint8_t> bytes;  // a program may write other code to the same place
    auto operator<=>(const Key&) const = default;
  };
  std::deque<Code> codes_;
  std::map<Key, Code*> by_place_;
  std::map<std::vector<Code*>, Block> blocks_;
};

}  // namespace crosstalk::reference
