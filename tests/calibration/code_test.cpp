// SPDX-License-Identifier: Apache-2.0
// Kernels in machine code compute what they say, and hold the instructions that they say.
#include <Zydis/Zydis.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/register_code.h"
#include "collectors/calibration/sparse_kernel.h"
#include "collectors/calibration/stream_code.h"

namespace crosstalk::collectors::calibration::code_test {
namespace {

using models::Element;
using models::Kind;
using models::Mix;
using models::Operation;
using models::Precision;
using models::Width;

using models::all_widths;
constexpr std::array all_mixes = {Mix::loads, Mix::two_to_one, Mix::one_to_one, Mix::stores};

/// The instructions of the loop that the first jump back closes.
struct Loop {
  std::map<ZydisMnemonic, unsigned> count;
  unsigned loads = 0, stores = 0;         // of vectors
  std::map<unsigned, unsigned> of_bytes;  // the sizes of their memory operands
};

void add(Loop& loop, const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands) {
  ++loop.count[instruction.mnemonic];
  for (unsigned i = 0; i < instruction.operand_count_visible; ++i) {
    if (operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY) {
      ++(i == 0 ? loop.stores : loop.loads);
      ++loop.of_bytes[operands[i].size / 8];
    }
  }
}

Loop first_loop(std::span<const std::uint8_t> code) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  std::size_t begin = 0;
  for (const bool find : {true, false}) {  // first where the loop begins, then what is in it
    Loop loop;
    for (std::size_t at = find ? 0 : begin; at < code.size(); at += instruction.length) {
      EXPECT_TRUE(ZYAN_SUCCESS(
          ZydisDecoderDecodeFull(&decoder, code.data() + at, code.size() - at, &instruction, operands.data())));
      if (instruction.mnemonic == ZYDIS_MNEMONIC_JNZ) {
        begin = at + instruction.length + static_cast<std::size_t>(operands[0].imm.value.s);
        if (!find) {
          return loop;
        }
        break;
      }
      add(loop, instruction, operands.data());
    }
  }
  ADD_FAILURE() << "there is no loop";
  return {};
}

/// Three arrays of numbers; each loop may change the first.
class Arrays3 {
 public:
  explicit Arrays3(std::uint64_t bytes) : bytes_(bytes), memory_(3 * bytes / sizeof(double) + 8) {
    first_ = (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64 / sizeof(double);
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      memory_[i] = static_cast<double>(i);
    }
  }
  [[nodiscard]] double* array(unsigned number) { return memory_.data() + first_ + number * bytes_ / sizeof(double); }
  [[nodiscard]] TrafficArrays of(Mix mix) {
    TrafficArrays arrays;
    arrays.bytes = bytes_;
    arrays.scale = 2.5;
    arrays.a = array(0);
    arrays.b = array(mix == Mix::loads ? 0 : 1);
    arrays.c = array(2);
    return arrays;
  }

 private:
  std::uint64_t bytes_;
  std::vector<double> memory_;
  std::size_t first_ = 0;
};

std::string label(const StreamShape& shape) {
  return std::string(name(shape.width)) + " " + std::string(name(shape.mix)) + " " + std::to_string(shape.fillers) +
         " " + std::string(name(shape.filler));
}

void expect_streams(const StreamShape& shape) {
  SCOPED_TRACE(label(shape));
  constexpr std::uint64_t bytes = 2 * traffic_round_bytes;
  const auto loop = StreamLoop::make(shape);
  ASSERT_TRUE(loop) << loop.error().message;
  Arrays3 arrays(bytes), want(bytes);
  loop->run(arrays.of(shape.mix), 3);
  for (std::size_t i = 0; i < bytes / sizeof(double); ++i) {
    const double a = shape.mix == Mix::loads        ? want.array(0)[i]
                     : shape.mix == Mix::two_to_one ? want.array(2)[i]
                     : shape.mix == Mix::one_to_one ? want.array(1)[i]
                                                    : 2.5;
    ASSERT_EQ(arrays.array(0)[i], a) << i;
    ASSERT_EQ(arrays.array(1)[i], want.array(1)[i]) << i;
    ASSERT_EQ(arrays.array(2)[i], want.array(2)[i]) << i;
  }
}

void expect_mix(const StreamShape& shape) {
  SCOPED_TRACE(label(shape));
  const auto loop = StreamLoop::make(shape);
  ASSERT_TRUE(loop) << loop.error().message;
  const Loop found = first_loop(loop->code().bytes());
  const unsigned in_a_group = group_size(shape.mix);
  const unsigned groups = (found.loads + found.stores) / in_a_group;
  EXPECT_GE(groups, 2U);
  EXPECT_EQ(found.stores, shape.mix == Mix::loads ? 0 : groups);
  EXPECT_EQ(found.loads + found.stores, groups * in_a_group);
  EXPECT_EQ(found.of_bytes, (std::map<unsigned, unsigned>{{vector_bytes(shape.width), groups * in_a_group}}));
  const ZydisMnemonic filler = operation_of(shape.filler).mnemonic;
  const auto fillers = found.count.find(filler);
  const unsigned steps = filler == ZYDIS_MNEMONIC_ADD ? 1 : 0;  // of the index
  EXPECT_EQ(fillers == found.count.end() ? 0 : fillers->second, groups * shape.fillers + steps);
  EXPECT_EQ(loop->memory_instructions(1024, 3), 3U * 1024 / vector_bytes(shape.width) * in_a_group);
}

TEST(StreamCode, MovesWhatItsMixSays) {
  for (const Width width : all_widths) {
    for (const Mix mix : all_mixes) {
      for (const std::uint32_t fillers : {0U, 3U, 96U}) {
        if (is_supported(width)) {
          expect_streams({width, mix, fillers});
          expect_streams({width, mix, fillers, Kind::integer_add});
          expect_streams({width, mix, fillers, models::kind_of(width)});
        }
      }
    }
  }
}

TEST(StreamCode, HoldsAsManyLoadsStoresAndFillersAsItSays) {
  for (const Width width : all_widths) {
    for (const Mix mix : all_mixes) {
      for (const std::uint32_t fillers : {0U, 1U, 33U}) {
        expect_mix({width, mix, fillers});
        expect_mix({width, mix, fillers, Kind::integer_add});
        expect_mix({width, mix, fillers, models::kind_of(width)});
      }
    }
  }
}

std::vector<RegisterOperation> all_operations() {
  std::vector<RegisterOperation> operations;
  for (std::size_t i = 0; i < models::names<Kind>().size(); ++i) {
    operations.push_back(operation_of(static_cast<Kind>(i)));
  }
  for (const Width width : all_widths) {
    for (const Operation operation : {Operation::add, Operation::mul, Operation::fma}) {
      for (const Precision precision : {Precision::double_precision, Precision::single_precision}) {
        operations.push_back(operation_of(width, precision, operation));
      }
    }
    for (const Operation operation : {Operation::add, Operation::mul}) {
      for (const Element element : {Element::int32, Element::int64}) {
        operations.push_back(operation_of(width, element, operation));
      }
    }
  }
  return operations;
}

TEST(RegisterCode, HoldsOnlyTheInstructionsOfItsKind) {
  for (const RegisterOperation& operation : all_operations()) {
    if (!operation.supported) {
      continue;
    }
    SCOPED_TRACE(ZydisMnemonicGetString(operation.mnemonic));
    for (const auto& make : {independent_code, chain_code}) {
      const auto code = make(operation);
      ASSERT_TRUE(code) << code.error().message;
      Loop loop = first_loop(code->bytes());
      EXPECT_EQ(loop.count[operation.mnemonic], register_round);
      loop.count.erase(operation.mnemonic);
      EXPECT_EQ(loop.count, (std::map<ZydisMnemonic, unsigned>{{ZYDIS_MNEMONIC_DEC, 1}}));
      code->as<RoundsFunction>()(2);
    }
  }
}

TEST(RegisterCode, WritesOneRegisterInAChainAndEnoughOnesElse) {
  const auto registers_of = [](const ExecutableCode& code, ZydisMnemonic mnemonic) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecodedInstruction instruction;
    std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
    std::map<ZydisRegister, unsigned> written;
    for (std::size_t at = 0; at < code.bytes().size(); at += instruction.length) {
      if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.bytes().data() + at, code.bytes().size() - at,
                                               &instruction, operands.data()))) {
        break;
      }
      if (instruction.mnemonic == mnemonic) {
        ++written[operands[0].reg.value];
      }
    }
    return written.size();
  };
  const RegisterOperation add = operation_of(Width::sse, Precision::double_precision, Operation::add);
  EXPECT_EQ(registers_of(*chain_code(add), add.mnemonic), 1U);
  EXPECT_EQ(registers_of(*independent_code(add), add.mnemonic), 12U);
  const RegisterOperation integer = operation_of(Kind::integer_add);
  EXPECT_EQ(registers_of(*independent_code(integer), integer.mnemonic), 8U);
}

TEST(BufferCode, FollowsBothCirclesBetweenItsFillers) {
  std::array<void*, 3> ring_a{}, ring_b{};
  for (std::size_t i = 0; i < 3; ++i) {
    ring_a[i] = &ring_a[(i + 1) % 3];
    ring_b[i] = &ring_b[(i + 1) % 3];
  }
  for (std::size_t i = 0; i < models::names<Kind>().size(); ++i) {
    const RegisterOperation operation = operation_of(static_cast<Kind>(i));
    if (!operation.supported) {
      continue;
    }
    const auto code = buffer_code(operation, 17);
    ASSERT_TRUE(code) << code.error().message;
    TwoPlaces places{ring_a.data(), &ring_b[1]};
    code->as<BufferFunction>()(places, 4);
    EXPECT_EQ(places.a, &ring_a[1]);
    EXPECT_EQ(places.b, &ring_b[2]);
    Loop loop = first_loop(code->bytes());
    EXPECT_EQ(loop.count[operation.mnemonic], 2 * 17U);
    EXPECT_EQ(loop.loads, 2U);
  }
}

TEST(SparseKernel, AddsTheProduct) {
  // 1 2 0 / 0 0 0 / 0 3 4
  const std::vector<std::uint32_t> starts = {0, 2, 2, 4}, columns = {0, 1, 1, 2};
  const std::vector<double> values = {1, 2, 3, 4}, x = {10, 100, 1000};
  std::vector<double> y = {1, 2, 3};
  multiply({3, starts.data(), columns.data(), values.data()}, x.data(), y.data(), 2);
  EXPECT_EQ(y, (std::vector<double>{421, 2, 8603}));
  EXPECT_EQ(multiplied_bytes(3, 4), 152);
  EXPECT_EQ(multiplied_flops(4), 8);
}

}  // namespace
}  // namespace crosstalk::collectors::calibration::code_test
