// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/code_table.h"

namespace crosstalk::reference {

Code& CodeTable::code(std::uint32_t file, std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  Code*& found = by_place_[{file, offset, {bytes.begin(), bytes.end()}}];
  if (found == nullptr) {
    Code made;
    made.index = static_cast<CodeIndex>(codes_.size());
    made.file = file;
    made.offset = offset;
    made.facts = instruction_facts(bytes).value_or(InstructionFacts{});
    found = &codes_.emplace_back(made);
  }
  return *found;
}

Block& CodeTable::block(const std::vector<Code*>& codes) {
  Block& block = blocks_[codes];
  if (block.codes.empty()) {
    block.codes = codes;
  }
  return block;
}

std::vector<std::uint64_t> CodeTable::executions() const {
  std::vector<std::uint64_t> result(codes_.size());
  for (const auto& [codes, block] : blocks_) {
    for (const Code* code : codes) {
      result[code->index] += block.executions;
    }
  }
  return result;
}

}  // namespace crosstalk::reference
