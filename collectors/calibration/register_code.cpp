// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/register_code.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "collectors/calibration/flop_kernels.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Element;
using models::Kind;
using models::Operation;
using models::Precision;
using models::Width;

constexpr Accumulators integers = {8, 8}, vectors = {0, 12}, upper_vectors = {8, 7};
constexpr ZydisRegister integer_source = ZYDIS_REGISTER_RCX;
constexpr ZyanU8 vector_source = 15;  // holds zeros

bool is_integer(const RegisterOperation& operation) {
  return operation.registers == ZYDIS_REGCLASS_GPR64 || operation.registers == ZYDIS_REGCLASS_GPR32;
}
bool is_wide(const RegisterOperation& operation) {
  return operation.registers == ZYDIS_REGCLASS_YMM || operation.registers == ZYDIS_REGCLASS_ZMM;
}

Accumulators accumulators_of(const RegisterOperation& operation) { return is_integer(operation) ? integers : vectors; }

ZydisRegister numbered(const RegisterOperation& operation, unsigned number) {
  return ZydisRegisterEncode(operation.registers, static_cast<ZyanU8>(number));
}

ZydisRegisterClass vectors_of(Width width) {
  constexpr std::array<ZydisRegisterClass, 4> of_width = {ZYDIS_REGCLASS_XMM, ZYDIS_REGCLASS_XMM, ZYDIS_REGCLASS_YMM,
                                                          ZYDIS_REGCLASS_ZMM};
  return of_width[static_cast<std::size_t>(width)];
}

/// Appends `count` instructions on the accumulators in turn.
void append_steps(CodeWriter& writer, const RegisterOperation& operation, Accumulators accumulators, unsigned count) {
  CodeWriter all;
  std::vector<std::size_t> ends = {0};
  for (unsigned i = 0; i < accumulators.count; ++i) {
    append_step(all, operation, accumulators.first + i);
    ends.push_back(all.here());
  }
  if (!all.valid()) {
    writer.invalidate();
    return;
  }
  const std::span<const std::uint8_t> code = all.bytes();
  for (unsigned done = 0; done < count;) {
    const unsigned now = std::min(accumulators.count, count - done);
    writer.append(code.first(ends[now]));
    done += now;
  }
}

void leave(CodeWriter& writer, const RegisterOperation& operation) {
  restore(writer, operation);
  if (is_wide(operation)) {
    writer.add(ZYDIS_MNEMONIC_VZEROUPPER);
  }
  writer.add(ZYDIS_MNEMONIC_RET);
}

Result<ExecutableCode> loop_code(const RegisterOperation& operation, Accumulators accumulators) {
  CodeWriter writer;
  enter(writer, operation);
  writer.align();
  const std::size_t round = writer.here();
  append_steps(writer, operation, accumulators, register_round);
  writer.add(ZYDIS_MNEMONIC_DEC, {in_register(ZYDIS_REGISTER_RDI)});
  writer.jump_if_not_zero(round);
  leave(writer, operation);
  return writer.finish();
}

}  // namespace

Accumulators upper_accumulators_of(const RegisterOperation& operation) {
  return is_integer(operation) ? integers : upper_vectors;
}

void append_step(CodeWriter& writer, const RegisterOperation& operation, unsigned number) {
  if (operation.operands == 0) {
    writer.add(operation.mnemonic);
    return;
  }
  const ZydisEncoderOperand source =
      is_integer(operation)
          ? in_register(operation.registers == ZYDIS_REGCLASS_GPR64 ? integer_source : ZYDIS_REGISTER_ECX)
          : in_register(numbered(operation, vector_source));
  const ZydisEncoderOperand result = in_register(numbered(operation, number));
  if (operation.operands == 2) {
    writer.add(operation.mnemonic, {result, source});
  } else {
    writer.add(operation.mnemonic, {result, operation.fused ? source : result, source});
  }
}

void enter(CodeWriter& writer, const RegisterOperation& operation) {
  for (const ZydisRegister kept : {ZYDIS_REGISTER_R12, ZYDIS_REGISTER_R13, ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R15}) {
    if (is_integer(operation)) {
      writer.add(ZYDIS_MNEMONIC_PUSH, {in_register(kept)});
    }
  }
  if (is_wide(operation) || operation.fused) {
    writer.add(ZYDIS_MNEMONIC_VZEROALL);
  } else if (!is_integer(operation)) {
    for (ZyanU8 i = 0; i <= vector_source; ++i) {
      const auto vector = in_register(ZydisRegisterEncode(ZYDIS_REGCLASS_XMM, i));
      writer.add(ZYDIS_MNEMONIC_XORPS, {vector, vector});
    }
  }
}

void restore(CodeWriter& writer, const RegisterOperation& operation) {
  for (const ZydisRegister kept : {ZYDIS_REGISTER_R15, ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R13, ZYDIS_REGISTER_R12}) {
    if (is_integer(operation)) {
      writer.add(ZYDIS_MNEMONIC_POP, {in_register(kept)});
    }
  }
}

RegisterOperation operation_of(Kind kind) {
  switch (kind) {
    case Kind::nop:
      return {};
    case Kind::integer_add:
      return {ZYDIS_MNEMONIC_ADD, 2, false, ZYDIS_REGCLASS_GPR64, true};
    default: {
      const auto width = static_cast<Width>(static_cast<int>(kind) - static_cast<int>(Kind::scalar));
      return operation_of(width, Precision::double_precision, Operation::add);
    }
  }
}

RegisterOperation operation_of(Width width, Precision precision, Operation operation) {
  // By operation, AVX's form or SSE's, and whether packed, single or both.
  constexpr std::array<ZydisMnemonic, 4> add = {ZYDIS_MNEMONIC_ADDSD, ZYDIS_MNEMONIC_ADDPD, ZYDIS_MNEMONIC_ADDSS,
                                                ZYDIS_MNEMONIC_ADDPS};
  constexpr std::array<ZydisMnemonic, 4> mul = {ZYDIS_MNEMONIC_MULSD, ZYDIS_MNEMONIC_MULPD, ZYDIS_MNEMONIC_MULSS,
                                                ZYDIS_MNEMONIC_MULPS};
  constexpr std::array<ZydisMnemonic, 4> fma = {ZYDIS_MNEMONIC_VFMADD213SD, ZYDIS_MNEMONIC_VFMADD213PD,
                                                ZYDIS_MNEMONIC_VFMADD213SS, ZYDIS_MNEMONIC_VFMADD213PS};
  const bool packed = width != Width::scalar;
  const std::size_t form = (precision == Precision::single_precision ? 2U : 0U) + (packed ? 1U : 0U);
  if (operation == Operation::fma) {
    return {fma[form], 3, true, vectors_of(width), is_supported(width) && __builtin_cpu_supports("fma") != 0};
  }
  if (width <= Width::sse) {
    return {operation == Operation::add ? add[form] : mul[form], 2, false, ZYDIS_REGCLASS_XMM, true};
  }
  const bool doubles = precision == Precision::double_precision;
  const ZydisMnemonic wide = operation == Operation::add ? (doubles ? ZYDIS_MNEMONIC_VADDPD : ZYDIS_MNEMONIC_VADDPS)
                                                         : (doubles ? ZYDIS_MNEMONIC_VMULPD : ZYDIS_MNEMONIC_VMULPS);
  return {wide, 3, false, vectors_of(width), is_supported(width)};
}

RegisterOperation operation_of(Width width, Element element, Operation operation) {
  const bool add = operation == Operation::add;
  const bool narrow = element == Element::int32;
  if (width == Width::scalar) {
    return {add ? ZYDIS_MNEMONIC_ADD : ZYDIS_MNEMONIC_IMUL, 2, false,
            narrow ? ZYDIS_REGCLASS_GPR32 : ZYDIS_REGCLASS_GPR64, operation != Operation::fma};
  }
  const bool exists = add || (operation == Operation::mul && narrow);
  if (width == Width::sse) {
    const ZydisMnemonic mnemonic = !add ? ZYDIS_MNEMONIC_PMULLD : narrow ? ZYDIS_MNEMONIC_PADDD : ZYDIS_MNEMONIC_PADDQ;
    return {mnemonic, 2, false, ZYDIS_REGCLASS_XMM, exists && (add || __builtin_cpu_supports("sse4.1") != 0)};
  }
  const ZydisMnemonic mnemonic = !add ? ZYDIS_MNEMONIC_VPMULLD : narrow ? ZYDIS_MNEMONIC_VPADDD : ZYDIS_MNEMONIC_VPADDQ;
  return {mnemonic, 3, false, vectors_of(width), exists && is_supported(width)};
}

Result<ExecutableCode> independent_code(const RegisterOperation& operation) {
  return loop_code(operation, accumulators_of(operation));
}

Result<ExecutableCode> chain_code(const RegisterOperation& operation) {
  return loop_code(operation, {accumulators_of(operation).first, 1});
}

Result<ExecutableCode> buffer_code(const RegisterOperation& operation, unsigned fillers) {
  constexpr ZydisRegister places = ZYDIS_REGISTER_RDI, rounds = ZYDIS_REGISTER_RSI, a = ZYDIS_REGISTER_RAX,
                          b = ZYDIS_REGISTER_RDX;
  const auto word = [](ZydisRegister base, std::int64_t offset) {
    return memory_at(base, ZYDIS_REGISTER_NONE, offset, sizeof(void*));
  };
  CodeWriter writer;
  enter(writer, operation);
  writer.add(ZYDIS_MNEMONIC_MOV, {in_register(a), word(places, offsetof(TwoPlaces, a))});
  writer.add(ZYDIS_MNEMONIC_MOV, {in_register(b), word(places, offsetof(TwoPlaces, b))});
  writer.align();
  const std::size_t round = writer.here();
  for (const ZydisRegister place : {a, b}) {
    writer.add(ZYDIS_MNEMONIC_MOV, {in_register(place), word(place, 0)});
    append_steps(writer, operation, accumulators_of(operation), fillers);
  }
  writer.add(ZYDIS_MNEMONIC_DEC, {in_register(rounds)});
  writer.jump_if_not_zero(round);
  writer.add(ZYDIS_MNEMONIC_MOV, {word(places, offsetof(TwoPlaces, a)), in_register(a)});
  writer.add(ZYDIS_MNEMONIC_MOV, {word(places, offsetof(TwoPlaces, b)), in_register(b)});
  leave(writer, operation);
  return writer.finish();
}

}  // namespace crosstalk::collectors::calibration
