// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/vector_decoder.h"

#include <cstdint>

#include "base/x86.h"
#include "collectors/access/instruction_operation.h"
#include "collectors/access/vector_operation.h"
#include "collectors/access/vector_rows.h"

namespace crosstalk::in_target {

namespace {

using Row = VectorRow;
using O = VectorOperation;
using S = VectorShape;

/// The explicit operands, except the mask register and the immediate.
struct Operands {
  Place place[4] = {Place::none, Place::none, Place::none, Place::none};
  std::uint8_t bytes[4] = {};
  unsigned count = 0;
  bool immediate = false;
  bool all = true;  // each is one that is followed
};

Operands operands_of(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands) {
  Operands out;
  for (unsigned i = 0; i < instruction.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    // blendvps: the register that is not written down is an operand like the others
    const bool counts = i < instruction.operand_count_visible ||
                        (x86::is_register(operand) && is_vector(vector_place(operand.reg.value)));
    if (!counts || operand.encoding == ZYDIS_OPERAND_ENCODING_MASK) {
      continue;
    }
    if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
      out.immediate = true;
      continue;
    }
    const Place place = place_of_operand(operand);
    if (place == Place::elsewhere || out.count == 4) {
      out.all = false;
      return out;
    }
    out.bytes[out.count] = static_cast<std::uint8_t>(operand.size / 8U);
    out.place[out.count++] = place;
  }
  return out;
}

/// Returns the operation of a mnemonic that stands for two. Sets `predicate` for comparisons. Depends on the immediate
/// operand.
VectorOperation operation_of(const Row& row, const Operands& operands, std::uint8_t& predicate) {
  constexpr std::uint8_t equal = 0;
  constexpr std::uint8_t greater = 6;  // not less or equal
  switch (row.operation) {
    case O::pcmpeqb:
    case O::pcmpeqw:
    case O::pcmpeqd:
    case O::pcmpeqq:
      predicate = is_mask(operands.place[0]) ? equal : predicate;
      return is_mask(operands.place[0]) ? O::compare_signed : row.operation;
    case O::pcmpgtb:
    case O::pcmpgtw:
    case O::pcmpgtd:
    case O::pcmpgtq:
      predicate = is_mask(operands.place[0]) ? greater : predicate;
      return is_mask(operands.place[0]) ? O::compare_signed : row.operation;
    case O::permute_elements:
      return operands.immediate ? O::permute_quarters : row.operation;
    case O::permute_in_lanes:
      return !operands.immediate ? row.operation : row.element == 4 ? O::shuffle_words : O::shuffle_two;
    default:
      return row.operation;
  }
}

/// Left and right; false: operands that the shape does not have.
bool arrange(S shape, const Operands& from, DecodedInstruction& out) {
  const unsigned count = from.count;
  const Place last = count > 0 ? from.place[count - 1] : Place::none;
  out.destination = from.place[0];
  out.source = count > 2 ? from.place[1] : from.place[0];
  out.second = last;
  switch (shape) {
    case S::unary:
      out.source = last;
      return count <= 2;
    case S::compares:
      out.destination = Place::none;
      out.source = from.place[0];
      return count == 1 || count == 2;
    case S::shift:
      if (from.immediate) {
        out.source = last;
        out.second = Place::immediate;
      }
      return count >= 1;
    case S::moves_low:
      if (count == 2 && (last == Place::memory || out.destination == Place::memory)) {
        out.source = Place::none;
      }
      return count == 2 || count == 3;
    default:
      return count == 2 || count == 3;
  }
}

bool is_quarter_or_pair(VectorOperation operation, const Row& row) {
  return operation == O::permute_quarters || (operation == O::shuffle_two && row.operation == O::permute_in_lanes) ||
         (operation == O::shuffle_words && row.operation == O::permute_in_lanes);
}

std::uint8_t vector_size(const ZydisDecodedInstruction& instruction) {
  const bool wide =
      instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX || instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
  const unsigned bytes = wide ? instruction.avx.vector_length / 8U : 16U;
  return static_cast<std::uint8_t>(bytes == 0 ? 16 : bytes);
}

/// Bytes of the elements that a mask's bits stand for and that are made.
std::uint8_t element_size(const Row& row, VectorOperation operation, const Operands& operands) {
  const bool to_register = operation == O::convert_to_int || operation == O::truncate_to_int;
  if (to_register && row.element == 0) {
    return operands.bytes[0];
  }
  if (operation == O::move_zero) {  // movd and movq have one opcode: the general register says which
    const unsigned general = is_register(operands.place[0]) ? 0 : is_register(operands.place[1]) ? 1 : 2;
    return general < 2 ? operands.bytes[general] : row.element;
  }
  switch (operation) {  // operations whose results depend on several elements
    case O::packsswb:
    case O::packuswb:
      return 1;
    case O::packssdw:
    case O::packusdw:
      return 2;
    default:
      return row.element;
  }
}

VectorForm form_of(const ZydisDecodedInstruction& instruction, const Row& row, const DecodedInstruction& out) {
  VectorForm form;
  form.immediate = static_cast<std::uint8_t>(out.immediate);
  form.clears_upper =
      instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX || instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
  if (x86::is_masked(instruction)) {
    form.mask = static_cast<std::uint8_t>(instruction.avx.mask.reg - ZYDIS_REGISTER_K0);
  }
  form.zeroing = instruction.avx.mask.mode == ZYDIS_MASK_MODE_ZEROING ||
                 instruction.avx.mask.mode == ZYDIS_MASK_MODE_CONTROL_ZEROING;
  form.broadcasts = instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX &&
                    instruction.avx.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID &&
                    !instruction.avx.broadcast.is_static;
  form.scalar = row.shape == S::scalar || row.shape == S::scalar_unary;
  form.part = row.extra;
  return form;
}

bool is_followed(const ZydisDecodedInstruction& instruction, const Row& row, const Operands& operands,
                 const DecodedInstruction& out) {
  // Rounding given by the instruction itself, and addresses that are no plain ones, are too rare.
  if (!operands.all || instruction.avx.rounding.mode != ZYDIS_ROUNDING_MODE_INVALID || out.has(trait_address_unknown) ||
      instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX ||
      instruction.encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW) {
    return false;
  }
  // Four operands: only if the fourth selects.
  return operands.count <= 3 || row.operation == O::blend_by_sign;
}

}  // namespace

bool decode_vector(const ZydisDecodedInstruction& instruction, const ZydisDecodedOperand* operands,
                   DecodedInstruction& out) {
  const Row* row = vector_row_of(instruction.mnemonic);
  if (row == nullptr) {
    return false;
  }
  Operands found = operands_of(instruction, operands);
  if (!is_followed(instruction, *row, found, out)) {
    return false;
  }
  DecodedInstruction made = out;
  VectorForm form = form_of(instruction, *row, out);
  if (row->operation == O::blend_by_sign) {
    const Place selector = found.place[--found.count];
    if (found.count < 2 || !is_vector(selector)) {
      return false;
    }
    form.part = vector_number(selector);
  }
  const VectorOperation operation = operation_of(*row, found, form.immediate);
  if (!arrange(is_quarter_or_pair(operation, *row) ? S::unary : row->shape, found, made)) {
    return false;
  }
  made.operation = Operation::vector;
  made.size = vector_size(instruction);
  made.source_size = element_size(*row, operation, found);
  made.condition = static_cast<std::uint8_t>(operation);
  if (operation == O::convert_to_float && row->extra == 0) {  // cvtsi2sd: as wide as the register or the memory
    form.part = found.bytes[found.count - 1];
  }
  made.immediate = form.pack();
  out = made;
  return true;
}

}  // namespace crosstalk::in_target
