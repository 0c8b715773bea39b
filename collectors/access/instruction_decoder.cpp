// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/instruction_decoder.h"

#include <Zydis/Decoder.h>
#include <Zydis/Register.h>

#include "base/x86.h"
#include "collectors/access/instruction_operation.h"
#include "collectors/access/vector_decoder.h"

namespace crosstalk::in_target {

namespace {

// More operands (hidden ones count) only occur in instructions that we do not follow.
constexpr std::uint8_t operand_capacity = 6;

struct Decoding {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operand[operand_capacity];
};

/// Returns the register's number in an address, no_register for none. Sets the traits that follow from it.
std::uint8_t address_register(ZydisRegister r, std::uint16_t& traits) {
  if (r == ZYDIS_REGISTER_NONE) {
    return no_register;
  }
  if (r == ZYDIS_REGISTER_RIP) {
    return rip_register;
  }
  if (r == ZYDIS_REGISTER_EIP) {
    traits |= trait_address32;
    return rip_register;
  }
  if (r >= ZYDIS_REGISTER_EAX && r <= ZYDIS_REGISTER_R15D) {
    traits |= trait_address32;
  } else if (r < ZYDIS_REGISTER_RAX || r > ZYDIS_REGISTER_R15) {
    traits |= trait_address_unknown;
    return no_register;
  }
  return static_cast<std::uint8_t>(place_of_register(r));
}

void set_address(const ZydisDecodedOperand& operand, DecodedInstruction& out) {
  const auto& memory = operand.mem;
  if (memory.type == ZYDIS_MEMOP_TYPE_VSIB || memory.segment == ZYDIS_REGISTER_GS) {
    out.traits |= trait_address_unknown;
  } else if (memory.segment == ZYDIS_REGISTER_FS) {
    out.traits |= trait_fs;
  }
  out.base = address_register(memory.base, out.traits);
  out.index = address_register(memory.index, out.traits);
  out.scale_and_kind = static_cast<std::uint8_t>(memory.scale);
  const std::int64_t displacement = memory.disp.has_displacement ? memory.disp.value : 0;
  out.displacement = static_cast<std::int32_t>(displacement);
  if (out.displacement != displacement) {
    out.traits |= trait_wide_displacement;
    out.immediate = static_cast<std::int32_t>(displacement >> 32U);
  }
}

void set_access(const ZydisDecodedOperand& operand, DecodedInstruction& out) {
  set_address(operand, out);
  out.traits |= trait_explicit_access;
  out.scale_and_kind |= static_cast<std::uint8_t>(static_cast<unsigned>(x86::kind_of(operand)) << 4U);
  out.width = x86::width_of(operand);
}

void set_immediate(const ZydisDecodedOperand& operand, DecodedInstruction& out) {
  const std::int64_t value = operand.imm.value.s;
  if (out.has(trait_wide_displacement)) {
    return;
  }
  out.immediate = static_cast<std::int32_t>(value);
  if (out.size == 8 && out.immediate != value) {
    out.traits |= trait_wide_immediate;
    out.displacement = out.immediate;
    out.immediate = static_cast<std::int32_t>(value >> 32U);
  }
}

bool ends_knowledge(const ZydisDecodedInstruction& instruction) {
  if ((instruction.attributes & ZYDIS_ATTRIB_IS_PRIVILEGED) != 0 ||
      instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR) {
    return true;
  }
  switch (instruction.meta.category) {
    case ZYDIS_CATEGORY_SYSCALL:
    case ZYDIS_CATEGORY_SYSRET:
    case ZYDIS_CATEGORY_INTERRUPT:
    case ZYDIS_CATEGORY_IO:
    case ZYDIS_CATEGORY_IOSTRINGOP:
    case ZYDIS_CATEGORY_VTX:
    case ZYDIS_CATEGORY_SGX:
    case ZYDIS_CATEGORY_UINTR:
    case ZYDIS_CATEGORY_SEGOP:
    case ZYDIS_CATEGORY_CLZERO:
    case ZYDIS_CATEGORY_ENQCMD:
    case ZYDIS_CATEGORY_MOVDIR:
    case ZYDIS_CATEGORY_PADLOCK:
    case ZYDIS_CATEGORY_AMX_TILE:
      return true;
    default:
      break;
  }
  switch (instruction.mnemonic) {
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_WRFSBASE:
    case ZYDIS_MNEMONIC_WRGSBASE:
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_XABORT:
    case ZYDIS_MNEMONIC_ENTER:
    case ZYDIS_MNEMONIC_XLAT:
      return true;
    default:
      return false;
  }
}

void set_places(const Decoding& from, DecodedInstruction& out) {
  const auto visible = from.instruction.operand_count_visible;
  Place place[3] = {Place::none, Place::none, Place::none};
  for (std::size_t i = 0; i < visible && i < 3; ++i) {
    place[i] = place_of_operand(from.operand[i]);
  }
  const auto bytes = [&](std::size_t i) { return static_cast<std::uint8_t>(from.operand[i].size / 8U); };
  out.size = visible > 0 ? bytes(0) : 8;
  out.source_size = visible > 1 && place[1] != Place::immediate ? bytes(1) : out.size;
  out.destination = place[0];
  out.source = place[1];
  out.second = place[2];
  switch (out.operation) {
    case Operation::multiply:
      out.second = visible == 2 ? place[0] : place[2];
      break;
    case Operation::multiply_wide:
    case Operation::multiply_wide_signed:
    case Operation::divide:
    case Operation::divide_signed:
    case Operation::jump:
    case Operation::call:
      out.source = place[0];
      out.destination = Place::none;
      break;
    case Operation::push:
      out.source = visible > 0 ? place[0] : Place::elsewhere;
      out.destination = Place::none;
      out.size = static_cast<std::uint8_t>(from.instruction.operand_width / 8U);
      break;
    case Operation::pop:
      out.destination = visible > 0 ? place[0] : Place::elsewhere;
      out.size = static_cast<std::uint8_t>(from.instruction.operand_width / 8U);
      break;
    case Operation::move_signed:
      if (visible == 0) {  // cbw, cwde, cdqe
        out.destination = out.source = place_of(Register::rax);
        out.size = static_cast<std::uint8_t>(from.instruction.operand_width / 8U);
        out.source_size = out.size / 2;
      }
      break;
    case Operation::sign_fill:
      out.destination = place_of(Register::rdx);
      out.source = place_of(Register::rax);
      out.size = static_cast<std::uint8_t>(from.instruction.operand_width / 8U);
      break;
    default:
      break;
  }
}

/// A memory operand. False: one that is not followed.
bool set_memory(const ZydisDecodedOperand& operand, bool visible, bool accesses, DecodedInstruction& out) {
  if (!visible) {
    return uses_stack(out.operation) || !accesses;
  }
  if (!accesses || operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN) {
    set_address(operand, out);
    return true;
  }
  if (out.has(trait_explicit_access)) {
    return out.operation == Operation::string;  // the first one counts
  }
  set_access(operand, out);
  return operand.mem.type != ZYDIS_MEMOP_TYPE_MIB;
}

/// A written register. False: one whose change is not followed.
bool set_written(ZydisRegister written, DecodedInstruction& out) {
  const Place place = place_of_register(written);
  if (place != Place::elsewhere) {
    out.clobbers |= static_cast<std::uint16_t>(1U << (static_cast<unsigned>(place) & 15U));
    return true;
  }
  const Place vector = vector_place(written);
  if (vector != Place::elsewhere && vector != out.destination) {
    out.traits |= trait_writes_vectors;
  }
  return ZydisRegisterGetClass(written) != ZYDIS_REGCLASS_SEGMENT;
}

/// Memory operands, immediates and written registers. False: something that is not followed.
bool set_operands(const Decoding& from, DecodedInstruction& out) {
  const bool accesses = !x86::touches_no_memory(from.instruction);
  for (std::size_t i = 0; i < from.instruction.operand_count; ++i) {
    const ZydisDecodedOperand& operand = from.operand[i];
    const bool visible = i < from.instruction.operand_count_visible || out.operation == Operation::string;
    bool followed = true;
    if (x86::is_memory(operand)) {
      followed = set_memory(operand, visible, accesses, out);
    } else if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && visible) {
      set_immediate(operand, out);
    } else if (x86::writes_register(operand)) {
      followed = set_written(operand.reg.value, out);
    }
    if (!followed) {
      return false;
    }
  }
  return true;
}

bool set_string(const Decoding& from, DecodedInstruction& out) {
  if (from.instruction.address_width != 64 || !out.has(trait_explicit_access)) {
    return false;
  }
  constexpr auto bit = [](Register r) { return static_cast<std::uint16_t>(1U << static_cast<unsigned>(r)); };
  for (std::size_t i = 0; i < from.instruction.operand_count; ++i) {
    if (x86::is_memory(from.operand[i])) {
      const bool at_rdi = from.operand[i].mem.base == ZYDIS_REGISTER_RDI;
      out.traits |= at_rdi ? trait_writes_rdi : trait_writes_rsi;
      out.clobbers |= bit(at_rdi ? Register::rdi : Register::rsi);  // Zydis does not always list them
    }
  }
  if (x86::is_repeated(from.instruction)) {
    out.traits |= trait_repeat;
    out.clobbers |= bit(Register::rcx);
  }
  return true;
}

/// True if the general rules are wrong for this instruction.
bool is_exception(const DecodedInstruction& out, ZydisMnemonic mnemonic) {
  const bool bit_string = mnemonic == ZYDIS_MNEMONIC_BT || mnemonic == ZYDIS_MNEMONIC_BTS ||
                          mnemonic == ZYDIS_MNEMONIC_BTR || mnemonic == ZYDIS_MNEMONIC_BTC;
  if (bit_string && out.has(trait_explicit_access) && out.source != Place::immediate) {
    return true;  // the register selects a bit anywhere in memory, not in the operand
  }
  return out.operation == Operation::pop && out.destination == Place::memory;  // rsp moves before it is used
}

bool translate(const Decoding& from, DecodedInstruction& out) {
  const ZydisDecodedInstruction& instruction = from.instruction;
  if (ends_knowledge(instruction) || instruction.operand_count > operand_capacity) {
    return false;
  }
  out.operation = operation_of(instruction);
  if (out.operation == Operation::stop) {
    return false;
  }
  set_places(from, out);
  if (!set_operands(from, out) || (out.operation == Operation::string && !set_string(from, out)) ||
      is_exception(out, instruction.mnemonic)) {
    return false;
  }
  out.condition = instruction.opcode & 15U;
  if (instruction.meta.category == ZYDIS_CATEGORY_XSAVE || instruction.mnemonic == ZYDIS_MNEMONIC_FXRSTOR ||
      instruction.mnemonic == ZYDIS_MNEMONIC_FXRSTOR64) {
    out.traits |= trait_writes_vectors;
  }
  if (out.operation == Operation::other) {
    decode_vector(instruction, from.operand, out);
  }
  if (x86::writes_status_flags(instruction)) {
    out.traits |= trait_writes_flags;
  }
  return true;
}

}  // namespace

bool decode_instruction(const std::uint8_t* code, std::size_t bytes, DecodedInstruction& out) {
  ZydisDecoder decoder;
  ZydisDecoderContext context;
  Decoding decoding;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, &context, code, bytes, &decoding.instruction))) {
    return false;
  }
  const auto count = decoding.instruction.operand_count;
  if (count <= operand_capacity &&
      !ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&decoder, &context, &decoding.instruction, decoding.operand, count))) {
    return false;
  }
  out = DecodedInstruction{};
  if (!translate(decoding, out)) {
    out = DecodedInstruction{};  // Operation::stop
  }
  out.length = decoding.instruction.length;
  return true;
}

}  // namespace crosstalk::in_target
