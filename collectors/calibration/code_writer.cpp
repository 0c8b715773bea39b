// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/code_writer.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace crosstalk::collectors::calibration {
namespace {

bool is_zmm(const ZydisEncoderOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER && ZydisRegisterGetClass(operand.reg.value) == ZYDIS_REGCLASS_ZMM;
}

}  // namespace

ExecutableCode::~ExecutableCode() {
  if (begin_ != nullptr) {
    ::munmap(begin_, size_);
  }
}

Result<ExecutableCode> ExecutableCode::of(std::span<const std::uint8_t> bytes) {
  ExecutableCode code;
  if (bytes.empty()) {
    return fail(ErrorCode::system, "there is no code to execute");
  }
  void* const memory = ::mmap(nullptr, bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::system, "there is no memory for the kernel's code");
  }
  code.begin_ = memory;
  code.size_ = bytes.size();
  std::memcpy(memory, bytes.data(), bytes.size());
  if (::mprotect(memory, bytes.size(), PROT_READ | PROT_EXEC) != 0) {
    return fail(ErrorCode::permission, "this system allows no memory that was written to be executed");
  }
  return code;
}

ZydisEncoderOperand in_register(ZydisRegister value) {
  ZydisEncoderOperand operand{};
  operand.type = ZYDIS_OPERAND_TYPE_REGISTER;
  operand.reg.value = value;
  return operand;
}

ZydisEncoderOperand immediate(std::int64_t value) {
  ZydisEncoderOperand operand{};
  operand.type = ZYDIS_OPERAND_TYPE_IMMEDIATE;
  operand.imm.s = value;
  return operand;
}

ZydisEncoderOperand memory_at(ZydisRegister base, ZydisRegister index, std::int64_t displacement, unsigned bytes) {
  ZydisEncoderOperand operand{};
  operand.type = ZYDIS_OPERAND_TYPE_MEMORY;
  operand.mem.base = base;
  operand.mem.index = index;
  operand.mem.scale = index == ZYDIS_REGISTER_NONE ? 0 : 1;
  operand.mem.displacement = displacement;
  operand.mem.size = static_cast<ZyanU16>(bytes);
  return operand;
}

void CodeWriter::add(ZydisMnemonic mnemonic, std::initializer_list<ZydisEncoderOperand> operands) {
  ZydisEncoderRequest request{};
  request.machine_mode = ZYDIS_MACHINE_MODE_LONG_64;
  request.mnemonic = mnemonic;
  for (const ZydisEncoderOperand& operand : operands) {
    request.operands[request.operand_count++] = operand;
    if (request.operand_count == 1 && std::any_of(operands.begin(), operands.end(), is_zmm)) {
      request.operands[request.operand_count++] = in_register(ZYDIS_REGISTER_K0);  // no mask
    }
  }
  std::array<std::uint8_t, ZYDIS_MAX_INSTRUCTION_LENGTH> code{};
  ZyanUSize length = code.size();
  if (!ZYAN_SUCCESS(ZydisEncoderEncodeInstruction(&request, code.data(), &length))) {
    failed_ = true;
    return;
  }
  append({code.data(), length});
}

void CodeWriter::align() {
  constexpr std::size_t line = 64;
  constexpr std::uint8_t nop = 0x90;
  bytes_.resize((bytes_.size() + line - 1) / line * line, nop);
}

void CodeWriter::jump_if_not_zero(std::size_t target) {
  constexpr std::array<std::uint8_t, 2> jnz_near = {0x0f, 0x85};
  constexpr std::size_t length = 6;
  const auto distance =
      static_cast<std::int32_t>(static_cast<std::int64_t>(target) - static_cast<std::int64_t>(bytes_.size() + length));
  append(jnz_near);
  std::array<std::uint8_t, sizeof(distance)> bytes{};
  std::memcpy(bytes.data(), &distance, sizeof(distance));
  append(bytes);
}

Result<ExecutableCode> CodeWriter::finish() const {
  return failed_ ? fail(ErrorCode::unsupported, "an instruction of the kernel cannot be encoded")
                 : ExecutableCode::of(bytes_);
}

}  // namespace crosstalk::collectors::calibration
