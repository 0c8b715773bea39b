// SPDX-License-Identifier: Apache-2.0
// Compares the vector unit with the processor: random instructions with random operands, NaNs and denormals among them,
// in all rounding modes. Known registers, flags and memory must match, and if all operands are known, the results must
// be known.
#include "collectors/access/vector_unit.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "collectors/access/instruction_decoder.h"
#include "tests/in_target/native_step.h"
#include "tests/repeats.h"

namespace crosstalk::test::vector_unit_test {
namespace {

using in_target::DecodedInstruction;
using in_target::Emulator;
using in_target::LookaheadMemory;
using in_target::Operation;
using in_target::ProcessorFeatures;
using in_target::Value;
using in_target::Vector;
using in_target::VectorForm;
using in_target::VectorOperation;
using in_target::VectorRegisters;
using in_target::VectorUnit;

constexpr std::uint32_t usual_mode = 0x1f80;
constexpr unsigned r15 = 15;

/// Static storage, which is zero.
LookaheadMemory memory;
VectorRegisters registers;
VectorRegisters truth;

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  unsigned below(unsigned n) { return static_cast<unsigned>(engine_()) % n; }
  std::uint64_t word() { return engine_(); }
  bool one_in(unsigned n) { return below(n) == 0; }

  /// Returns a number of `bytes` bytes, often a special one.
  std::uint64_t number(unsigned bytes) {
    static constexpr std::uint64_t doubles[] = {
        0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
        0xfff0000000000000, 0x7ff8000000000000, 0x7ff4000000000001, 0xfff8000000000123, 0x0000000000000001,
        0x800fffffffffffff, 0x0010000000000000, 0x7fefffffffffffff, 0x41dfffffffc00000, 0x43e0000000000000,
        0x3fe0000000000000, 0x4004000000000000};
    static constexpr std::uint32_t singles[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                                0xff800000, 0x7fc00000, 0x7fa00001, 0xffc00123, 0x00000001,
                                                0x807fffff, 0x00800000, 0x7f7fffff, 0x4f000000, 0x3f000000};
    if (one_in(3)) {
      return bytes == 8 ? doubles[below(sizeof doubles / sizeof *doubles)] : singles[below(sizeof singles / 4)];
    }
    if (one_in(2)) {  // not far from one, so that sums have something to round
      return bytes == 8 ? (word() >> 12U) | (std::uint64_t{0x3f8} + below(16)) << 52U
                        : (static_cast<std::uint32_t>(word()) >> 9U) | (0x78U + below(16)) << 23U;
    }
    return word() >> below(64);
  }
  void fill(std::uint8_t* out, std::size_t bytes) {
    const unsigned size = one_in(2) ? 8 : 4;
    for (std::size_t i = 0; i < bytes; i += size) {
      const std::uint64_t value = number(size);
      std::memcpy(out + i, &value, size);
    }
  }

 private:
  std::mt19937_64 engine_;
};

/// Encodings of vector instructions, not all of which are any.
class RandomEncoding {
 public:
  explicit RandomEncoding(Random& random) : random_(random) {}

  std::vector<std::uint8_t> make() {
    code_.clear();
    memory_ = random_.one_in(3);
    switch (random_.below(5)) {
      case 0:
        legacy();
        break;
      case 1:
        general();
        break;
      case 2:
        vex();
        break;
      default:
        evex();
    }
    return code_;
  }

 private:
  void byte(unsigned b) { code_.push_back(static_cast<std::uint8_t>(b)); }
  void rest(bool extended) {
    byte(random_.below(256));
    // [r15 + displacement], or a register
    byte((memory_ ? 0x47U : 0xc0U | random_.below(8)) | random_.below(8) << 3U);
    if (memory_) {
      byte((random_.below(extended ? 5 : 7) * 16) & 0xffU);
    }
    byte(random_.one_in(3) ? random_.below(256) : random_.below(8));
  }
  unsigned rex_bits() { return memory_ ? 1U | random_.below(2) << 2U : random_.below(2) | random_.below(2) << 2U; }
  void legacy() {
    static constexpr unsigned prefix[] = {0, 0x66, 0xf2, 0xf3};
    const unsigned chosen = prefix[random_.below(4)];
    if (chosen != 0) {
      byte(chosen);
    }
    if (memory_ || random_.one_in(2)) {
      byte(0x40U | rex_bits() | random_.below(2) << 3U);
    }
    byte(0x0f);
    const unsigned map = random_.below(3);
    if (map != 0) {
      byte(map == 1 ? 0x38 : 0x3a);
    }
    rest(false);
  }
  void general() {  // bits and exchanges
    static constexpr unsigned opcode[] = {0xa4, 0xa5, 0xac, 0xad, 0xab, 0xb3, 0xbb, 0xba,
                                          0xbc, 0xbd, 0xb8, 0xb0, 0xb1, 0xc0, 0xc1, 0xc7};
    if (random_.one_in(3)) {
      byte(random_.one_in(2) ? 0xf3 : 0x66);
    }
    byte(0x40U | rex_bits() | random_.below(2) << 3U);
    byte(0x0f);
    byte(opcode[random_.below(sizeof opcode / sizeof *opcode)]);
    byte((memory_ ? 0x47U : 0xc0U | random_.below(8)) | random_.below(8) << 3U);
    if (memory_) {
      byte(random_.below(7) * 16);
    }
    byte(random_.below(70));
  }
  void vex() {
    const unsigned rex = rex_bits();
    byte(0xc4);
    byte(((rex & 4U) != 0 ? 0U : 0x80U) | 0x40U | ((rex & 1U) != 0 ? 0U : 0x20U) | (1 + random_.below(3)));
    const unsigned source = random_.one_in(3) ? 15 : random_.below(16);  // 15: none
    byte(random_.below(2) << 7U | source << 3U | random_.below(2) << 2U | random_.below(4));
    rest(false);
  }
  void evex() {
    const unsigned rex = rex_bits();
    byte(0x62);
    byte(((rex & 4U) != 0 ? 0U : 0x80U) | (memory_ ? 0x40U : random_.below(2) << 6U) | ((rex & 1U) != 0 ? 0U : 0x20U) |
         random_.below(2) << 4U | (1 + random_.below(3)));
    const unsigned source = random_.one_in(3) ? 15 : random_.below(16);
    byte(random_.below(2) << 7U | source << 3U | 4U | random_.below(4));
    const unsigned mask = random_.one_in(2) ? 0 : random_.below(8);
    byte((mask != 0 ? random_.below(2) << 7U : 0) | random_.below(3) << 5U | (memory_ ? random_.below(2) << 4U : 0) |
         (random_.one_in(2) ? 8U : random_.below(2) << 3U) | mask);
    rest(true);
  }

  Random& random_;
  std::vector<std::uint8_t> code_;
  bool memory_ = false;
};

std::string text_of(const std::vector<std::uint8_t>& code) {
  std::string text;
  for (const std::uint8_t byte : code) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x ", byte);
    text += two;
  }
  return text;
}

bool read_own(void* /*context*/, std::uint64_t address, void* out, std::size_t bytes) {
  std::memcpy(out, reinterpret_cast<const void*>(address), bytes);  // NOLINT: the test's
  return true;
}
constexpr in_target::CodeReader own_memory = {nullptr, read_own, read_own};

/// One instruction, executed by the unit and by the processor.
class Comparison {
 public:
  explicit Comparison(unsigned seed)
      : random_(seed), encoding_(random_), processor_(in_target::find_processor_features()) {}

  /// Compares `wanted` instructions. `traps`: with exceptions that raise signals, too.
  void run(std::size_t wanted, bool some_unknown, bool traps);
  void expect_right() const {
    for (const auto& [code, times] : wrong_) {
      ADD_FAILURE() << code << " wrong " << times << " times";
    }
  }
  [[nodiscard]] std::size_t compared() const { return compared_; }
  [[nodiscard]] std::size_t known() const { return known_; }
  [[nodiscard]] std::size_t trapped() const { return trapped_; }
  /// Has the processor AVX-512 and FMA?
  [[nodiscard]] bool has_all() const {
    constexpr std::uint64_t with_avx512 = 0xe6;
    return (native_.frame_before().features & with_avx512) == with_avx512 &&
           (processor_.has & ProcessorFeatures::fma) != 0;
  }
  [[nodiscard]] const std::map<VectorOperation, std::size_t>& operations() const { return operations_; }

 private:
  bool choose(std::vector<std::uint8_t>& code, DecodedInstruction& instruction);
  void prepare(bool traps);
  void hide();
  Emulator emulate(const DecodedInstruction& instruction, const Registers& general, std::uint64_t flags);
  void compare(const std::string& text, const DecodedInstruction& instruction, const Emulator& made,
               const Registers& general, std::uint64_t flags);
  [[nodiscard]] bool result_known(const DecodedInstruction& instruction, const Emulator& made) const;
  void wrong(const std::string& text) { ++wrong_[text]; }

  Random random_;
  RandomEncoding encoding_;
  ProcessorFeatures processor_;
  NativeStep native_;
  std::map<std::string, std::size_t> wrong_;
  std::map<VectorOperation, std::size_t> operations_;
  std::size_t compared_ = 0, known_ = 0, trapped_ = 0;
};

bool is_ours(const DecodedInstruction& instruction) {
  switch (instruction.operation) {
    case Operation::vector:
    case Operation::exchange_add:
    case Operation::compare_exchange:
    case Operation::compare_exchange_wide:
    case Operation::scan_forward:
    case Operation::scan_reverse:
    case Operation::count_trailing:
    case Operation::count_leading:
    case Operation::count_ones:
    case Operation::and_not:
    case Operation::reset_lowest:
    case Operation::isolate_lowest:
    case Operation::mask_lowest:
    case Operation::zero_high_bits:
    case Operation::shift_double_left:
    case Operation::shift_double_right:
    case Operation::bit_set:
    case Operation::bit_reset:
    case Operation::bit_complement:
      return true;
    default:
      return false;
  }
}

/// Chooses an instruction that is interpreted, and that does not change the stack register and the memory register.
bool Comparison::choose(std::vector<std::uint8_t>& code, DecodedInstruction& instruction) {
  constexpr std::uint16_t forbidden = 1U << 7U | 1U << r15;
  code = encoding_.make();
  code.insert(code.end(), 4, 0);
  if (!in_target::decode_instruction(code.data(), code.size(), instruction) || !is_ours(instruction) ||
      (instruction.clobbers & forbidden) != 0) {
    return false;
  }
  const bool accesses = instruction.has(in_target::trait_explicit_access);
  if (accesses && (instruction.base != r15 || instruction.index != in_target::no_register)) {
    return false;
  }
  code.resize(instruction.length);
  return instruction.operation != Operation::vector ||
         in_target::vector_operation(instruction) != VectorOperation::load_mode;
}

void Comparison::prepare(bool traps) {
  random_.fill(native_.before() + 160, 256);
  for (unsigned component = 2; component < ProcessorFeatures::components; ++component) {
    const auto& part = processor_.part[component];
    if ((native_.frame_before().features >> component & 1U) != 0) {
      random_.fill(native_.before() + part.offset, part.bytes);
    }
  }
  // equal operands now and then
  if (random_.one_in(4)) {
    std::memcpy(native_.before() + 160 + 16 * random_.below(16), native_.before() + 160 + 16 * random_.below(16), 16);
  }
  random_.fill(native_.memory() + NativeStep::memory_bytes / 2 - 1024, 12288);
  std::uint32_t mode =
      usual_mode | random_.below(4) << 13U | (random_.one_in(4) ? 0x8000U : 0U) | (random_.one_in(4) ? 0x40U : 0U);
  if (traps) {
    mode &= ~(random_.below(64) << 7U);
  }
  std::memcpy(native_.before() + 24, &mode, sizeof mode);
}

/// Hides some register bytes from the unit; only the processor knows them.
void Comparison::hide() {
  for (unsigned r = 0; r < 32; ++r) {
    if (!random_.one_in(3)) {
      continue;
    }
    Vector& vector = registers.vector(r);
    const std::uint64_t hidden = random_.one_in(2) ? random_.word() : ~std::uint64_t{0} << random_.below(64);
    for (unsigned i = 0; i < Vector::bytes; ++i) {
      vector.byte[i] = (hidden >> i & 1U) != 0 ? static_cast<std::uint8_t>(random_.word()) : vector.byte[i];
    }
    vector.known &= ~hidden;
  }
  for (unsigned r = 0; r < 8; ++r) {
    if (random_.one_in(6)) {
      registers.mask(r) = {random_.word(), false};
    }
  }
}

Emulator Comparison::emulate(const DecodedInstruction& instruction, const Registers& general, std::uint64_t flags) {
  Emulator emulator(general, flags, 0);
  const Value address = emulator.address(instruction, 0);
  const bool accesses = instruction.has(in_target::trait_explicit_access);
  if (instruction.operation == Operation::vector) {
    VectorUnit(registers, processor_).execute(instruction, emulator, accesses ? address : Value{}, memory);
  } else if (instruction.operation == Operation::compare_exchange_wide) {
    const unsigned half = instruction.width / 2U;
    Value low = memory.load(address.bits, half);
    Value high = memory.load(address.bits + half, half);
    emulator.exchange_wide(half, low, high);
    memory.store(address.bits, half, low);
    memory.store(address.bits + half, half, high);
  } else {
    const Value operand = accesses ? memory.load(address.bits, instruction.width) : Value{};
    const Value result = emulator.execute(instruction, 0, operand);
    if (accesses && stores(instruction.kind())) {
      memory.store(address.bits, instruction.width, result);
    }
  }
  return emulator;
}

void Comparison::compare(const std::string& text, const DecodedInstruction& instruction, const Emulator& made,
                         const Registers& general, std::uint64_t flags) {
  if (!made.agrees_with(Emulator(general, flags, 0))) {
    wrong(text + "(general registers or flags)");
  }
  truth.load(native_.frame_after(), processor_);
  for (unsigned r = 0; r < 32; ++r) {
    const Vector& mine = registers.vector(r);
    const Vector& its = truth.vector(r);
    for (unsigned i = 0; i < Vector::bytes; ++i) {
      if ((mine.known & its.known) >> i & 1U && mine.byte[i] != its.byte[i]) {
        wrong(text + "(vector " + std::to_string(r) + ")");
        break;
      }
    }
  }
  for (unsigned r = 0; r < 8; ++r) {
    if (registers.mask(r).known && truth.mask(r).known && registers.mask(r).bits != truth.mask(r).bits) {
      wrong(text + "(mask)");
    }
  }
  if (instruction.has(in_target::trait_explicit_access) && stores(instruction.kind())) {
    const std::uint64_t at = native_.middle() + static_cast<std::uint64_t>(std::int64_t{instruction.displacement});
    std::uint8_t bytes[64];
    const std::uint64_t known = memory.load_bytes(at, instruction.width, bytes);
    for (unsigned i = 0; i < instruction.width; ++i) {
      if ((known >> i & 1U) != 0 &&
          bytes[i] != native_.memory()[at - reinterpret_cast<std::uint64_t>(native_.memory()) + i]) {
        wrong(text + "(memory)");
        break;
      }
    }
  }
}

bool Comparison::result_known(const DecodedInstruction& instruction, const Emulator& made) const {
  const in_target::Place place = instruction.destination;
  if (is_vector(place)) {
    return registers.vector(in_target::vector_number(place)).known == ~std::uint64_t{0};
  }
  if (is_mask(place)) {
    return registers.mask(in_target::vector_number(place)).known;
  }
  if (is_register(place)) {
    return made.get(place, 8).known;
  }
  return place == in_target::Place::memory || !made.flags_unknown();
}

void Comparison::run(std::size_t wanted, bool some_unknown, bool traps) {
  std::vector<std::uint8_t> code;
  DecodedInstruction instruction;
  for (std::size_t tries = 0; compared_ < wanted && tries < 400 * wanted; ++tries) {
    if (!choose(code, instruction)) {
      continue;
    }
    prepare(traps);
    Registers general;
    for (std::uint64_t& value : general.value) {
      value = random_.one_in(3) ? random_.below(70) : random_.word() >> random_.below(64);
    }
    general.value[r15] = native_.middle();
    general.value[7] = native_.stack();  // the same each time
    const Registers before = general;
    const std::uint64_t flags_before = 0x202 | (random_.word() & in_target::condition_flags);
    std::uint64_t flags = flags_before;
    registers.load(native_.frame_before(), processor_);
    if (some_unknown) {
      hide();
    }
    memory.begin(own_memory);
    const Emulator made = emulate(instruction, before, flags_before);
    const int raised = native_.run(code, general, flags);
    const std::string text = text_of(code);
    if (raised == SIGFPE) {
      ++trapped_;
      if (result_known(instruction, made)) {
        wrong(text + "(known, and it trapped)");
      }
    }
    if (raised != 0 || native_.stack() != before.value[7]) {
      continue;  // an encoding that this processor does not have
    }
    general.value[16] = before.value[16];
    ++compared_;
    compare(text, instruction, made, general, flags);
    if (instruction.operation == Operation::vector) {
      ++operations_[in_target::vector_operation(instruction)];
    }
    known_ += result_known(instruction, made) ? 1 : 0;
  }
}

TEST(VectorUnit, AgreesWithTheProcessorOnRandomInstructions) {
  constexpr std::size_t wanted = repeats(60'000);
  Comparison comparison(1);
  constexpr std::size_t most = 200'000;  // by then each operation was drawn, if this processor has it
  constexpr std::size_t all_operations = static_cast<std::size_t>(VectorOperation::count) - 1;  // load_mode is apart
  comparison.run(wanted, false, false);
  EXPECT_EQ(comparison.compared(), wanted);
  while (comparison.has_all() && comparison.operations().size() < all_operations && comparison.compared() < most) {
    comparison.run(comparison.compared() + wanted, false, false);
  }
  comparison.expect_right();
  std::printf("%zu compared, results known of %zu, %zu operations\n", comparison.compared(), comparison.known(),
              comparison.operations().size());
  EXPECT_GT(comparison.known(), comparison.compared() * 95 / 100);
  // The set of operations depends on the processor; this is with AVX-512.
  for (unsigned i = 0; comparison.has_all() && i < static_cast<unsigned>(VectorOperation::count); ++i) {
    const auto operation = static_cast<VectorOperation>(i);
    const bool apart = operation == VectorOperation::load_mode;
    EXPECT_TRUE(apart || comparison.operations().contains(operation)) << "never compared: operation " << i;
  }
}

TEST(VectorUnit, SaysNothingWrongWhereOperandsAreUnknown) {
  constexpr std::size_t wanted = repeats(10'000);
  Comparison comparison(2);
  comparison.run(wanted, true, false);
  comparison.expect_right();
  EXPECT_EQ(comparison.compared(), wanted);
}

TEST(VectorUnit, ResultsOfWhatWouldTrapAreUnknown) {
  constexpr std::size_t wanted = repeats(10'000);
  constexpr std::size_t enough = 100;  // that trapped
  constexpr std::size_t most =
      200'000;  // by then there are as many, also without AVX-512, where fewer instructions trap
  Comparison comparison(3);
  do {
    comparison.run(comparison.compared() + wanted, false, true);
  } while (comparison.trapped() < enough && comparison.compared() < most);
  comparison.expect_right();
  std::printf("%zu of %zu trapped\n", comparison.trapped(), comparison.compared());
  EXPECT_GE(comparison.trapped(), enough);
}

}  // namespace
}  // namespace crosstalk::test::vector_unit_test
