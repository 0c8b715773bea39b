// SPDX-License-Identifier: Apache-2.0
// Unwinding with a fixed, good module (this program) and registers, stack bytes and load addresses of any
// kind; and DWARF expressions of any kind.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "symbolizer/elf/elf_file.h"
#include "symbolizer/symbolizer.h"
#include "symbolizer/unwind/expression.h"
#include "symbolizer/unwind/frame_ranges.h"

namespace {

using namespace crosstalk;
using namespace crosstalk::symbolizer;

struct Subject {
  Symbolizer symbols{Options{"", false, {}}};
  ModuleId id = symbols.add_module({"/proc/self/exe", "", false});
  std::vector<AddressRange> functions;
  Subject() {
    if (const auto file = ElfFile::open("/proc/self/exe")) {
      functions = FrameRanges(*file).all();
    }
  }
};

void unwind(const Registers& registers, std::span<const std::uint8_t> stack) {
  static Subject subject;
  Registers start = registers;
  // Half of the runs begin inside a real function: elsewhere no frame rule is ever applied.
  if (!subject.functions.empty() && registers[Register::rip] % 2 == 0) {
    const AddressRange& range = subject.functions[registers[Register::rip] % subject.functions.size()];
    start[Register::rip] = range.begin + registers[Register::rax] % (range.end - range.begin);
    start[Register::rsp] = registers[Register::rsp] % 0x7fff'ffff'0000;
  }
  const Mapping mapping{0, std::uint64_t{1} << 46U, 0, subject.id};
  static_cast<void>(subject.symbols.unwind(start, stack, {&mapping, 1}, 256));
}

void evaluate_bytes(const Registers& registers, std::span<const std::uint8_t> bytes) {
  std::vector<Operation> operations;
  for (std::size_t i = 0; i + 3 <= bytes.size() && operations.size() < 512; i += 3) {
    const auto operand = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(bytes[i + 1])});
    operations.push_back({bytes[i], operand, bytes[i + 2], i});
  }
  const StackMemory memory(registers[Register::rsp], bytes);
  static_cast<void>(evaluate(operations, registers, memory, registers[Register::rsp]));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Registers registers;
  const std::size_t head = std::min(size, sizeof registers.value);
  std::memcpy(registers.value.data(), data, head);
  const std::span<const std::uint8_t> rest(data + head, size - head);
  unwind(registers, rest);
  evaluate_bytes(registers, rest);
  return 0;
}
