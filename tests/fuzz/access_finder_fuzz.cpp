// SPDX-License-Identifier: Apache-2.0
// Hostile code and registers for the access finder: it must not crash, must read memory through its reader only, must
// finish soon, and must answer with a possible access.
//
// Input: 18 words (registers in DWARF order, flags), then code. A register below 4096 becomes an address in the code
// or the stack, so that random inputs get somewhere.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "collectors/access/code.h"
#include "collectors/access/finder.h"
#include "collectors/access/lookahead.h"
#include "profile/branch_trace.h"

namespace {

using crosstalk::Register;
using crosstalk::Registers;
namespace in_target = crosstalk::in_target;

constexpr std::uint64_t code_page = 0x400000;
constexpr std::uint64_t stack_begin = 0x7ffe00000000;
constexpr std::uint64_t stack_bytes = 4096;
constexpr std::uint64_t page_bytes = 4096;
constexpr std::size_t words = 18;
constexpr std::size_t saved_bytes = 2816;  // of vector registers
constexpr unsigned most_reads = 1000;      // 2 searches, at most 64 instructions each, a few reads an instruction

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

struct Target {
  const std::uint8_t* code;
  std::uint64_t code_begin;
  std::uint64_t code_bytes;
  std::uint8_t stack[stack_bytes];
  unsigned reads = 0;
};

bool copy_from(std::uint64_t begin, std::uint64_t size, const std::uint8_t* bytes, std::uint64_t address, void* out,
               std::size_t count) {
  if (address < begin || address - begin > size || size - (address - begin) < count) {
    return false;
  }
  std::memcpy(out, bytes + (address - begin), count);
  return true;
}

bool read_code(void* context, std::uint64_t address, void* out, std::size_t bytes) {
  auto& target = *static_cast<Target*>(context);
  require(++target.reads < most_reads);
  require(bytes > 0 && bytes <= 192 && address / page_bytes == (address + bytes - 1) / page_bytes);
  return copy_from(target.code_begin, target.code_bytes, target.code, address, out, bytes);
}

bool read_data(void* context, std::uint64_t address, void* out, std::size_t bytes) {
  auto& target = *static_cast<Target*>(context);
  require(++target.reads < most_reads);
  require(bytes <= 64 && address / page_bytes == (address + bytes - 1) / page_bytes);
  return copy_from(stack_begin, stack_bytes, target.stack, address, out, bytes);
}

Registers make_registers(const std::uint64_t* word, const Target& target) {
  Registers registers;
  for (std::size_t i = 0; i < crosstalk::register_count; ++i) {
    const std::uint64_t value = word[i];
    registers.value[i] = value >= page_bytes ? value : (i % 2 == 0 ? target.code_begin : stack_begin) + value;
  }
  if (word[16] < target.code_bytes || word[16] % 4 != 0) {
    registers[Register::rip] = target.code_begin + word[16] % (target.code_bytes + 1);
  }
  return registers;
}

void check(const in_target::FoundAccess& found) {
  require(found.kind != crosstalk::AccessKind::none && found.width <= 64);
  require(found.from != crosstalk::profile::AddressFrom::none);
}

void walk(in_target::AccessFinder& finder, const Registers& registers, const std::uint64_t* word,
          const in_target::CodeReader& reader, const Target& target) {
  static in_target::LookaheadState state;
  static const in_target::ProcessorFeatures processor = in_target::find_processor_features();
  state.processor = processor;
  // Vector registers that hold the input, under any mode of rounding and any exceptions.
  alignas(64) static std::uint8_t area[saved_bytes];
  for (std::size_t i = 0; i < sizeof area; ++i) {
    area[i] = target.stack[i % stack_bytes];
  }
  const std::uint64_t features = word[5];
  std::memcpy(area + 512, &features, sizeof features);
  state.vectors.load({area, static_cast<std::size_t>(word[4] % (sizeof area + 1)), features | 3U}, processor);
  std::uint8_t way[256];
  const in_target::LookaheadLimits limits;
  const in_target::Lookahead made =
      finder.look_ahead(registers, word[17], word[0], reader, limits, state, way, sizeof way);
  require(made.instructions <= limits.most_instructions && made.passages <= limits.passages);
  require(made.trace_bytes > 0 && made.trace_bytes <= sizeof way);
  const auto lines = crosstalk::profile::unpack_branch_trace({way, made.trace_bytes}, registers[Register::rip]);
  require(lines.has_value());
  if (made.end == crosstalk::profile::LookaheadEnd::whole) {
    require(made.head != 0 && lines->back().last == made.head);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static in_target::AccessFinder finder;  // kept: rewritten code must not confuse its cache
  std::uint64_t word[words] = {};
  const std::size_t head = size < sizeof(word) ? size : sizeof(word);
  std::memcpy(word, data, head);
  const std::size_t code_bytes = size - head < 2 * page_bytes ? size - head : 2 * page_bytes;
  const std::unique_ptr<std::uint8_t[]> code(new std::uint8_t[code_bytes]);  // of the exact size, for sanitizers
  std::memcpy(code.get(), data + head, code_bytes);
  Target target{code.get(), code_page + word[17] % page_bytes, code_bytes, {}, 0};
  for (std::size_t i = 0; i < stack_bytes && code_bytes > 0; ++i) {
    target.stack[i] = code[i % code_bytes];
  }
  const Registers registers = make_registers(word, target);
  const in_target::CodeReader reader{&target, read_code, read_data};
  in_target::FoundAccess found;
  if (finder.find(registers, word[17], word[0], reader, found)) {
    check(found);
  }
  target.reads = 0;
  if (finder.find_next(registers, word[17], word[0], reader, found)) {
    check(found);
  }
  target.reads = 0;
  if (finder.find_retired(registers, word[17], word[0], reader, found)) {
    check(found);
  }
  target.reads = 0;
  walk(finder, registers, word, reader, target);
  for (std::size_t i = 0; i < code_bytes && i < 64; ++i) {
    const in_target::Outline outline = in_target::outline_instruction(code.get() + i, code_bytes - i);
    require(outline.length <= in_target::longest_instruction && outline.length <= code_bytes - i);
  }
  return 0;
}
