// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/vector_unit.h"

#include <cstring>

namespace crosstalk::in_target {

namespace {

using O = VectorOperation;

constexpr unsigned xmm_bytes = 16;

/// A bit for each byte of the elements that the mask has.
std::uint64_t bytes_of_mask(std::uint64_t mask, unsigned element) {
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < Vector::bytes / element; ++i) {
    bytes |= (mask >> i & 1U) != 0 ? low_bits(element) << (i * element) : 0;
  }
  return bytes;
}

/// Replaces the bits of `a` that are set in `which` by those of `b`.
void merge(Vector& a, const Vector& b, std::uint64_t which) {
  for (unsigned i = 0; i < Vector::bytes; ++i) {
    a.byte[i] = (which >> i & 1U) != 0 ? b.byte[i] : a.byte[i];
  }
  a.known = (a.known & ~which) | (b.known & which);
}

Vector nothing_known() {
  Vector vector;
  std::memset(vector.byte, 0, sizeof vector.byte);
  vector.known = 0;
  return vector;
}

Vector of_value(std::uint64_t bits, bool known) {
  Vector vector = nothing_known();
  std::memcpy(vector.byte, &bits, sizeof bits);
  vector.known = known ? ~std::uint64_t{0} : 0;
  return vector;
}

std::uint64_t low_word(const Vector& vector) { return element_at(vector, 0, 8); }

/// The signs of the elements, a bit each.
std::uint64_t signs_of(const VectorStep& step, const Vector& vector) {
  std::uint64_t signs = 0;
  for (unsigned i = 0; i < step.count(); ++i) {
    const std::uint64_t sign = vector.byte[(i + 1) * step.element - 1] >> 7U;
    signs |= sign << i;
  }
  return signs;
}

bool all_known(const VectorStep& step, const Vector& vector) {
  return (vector.known & low_bits(step.size)) == low_bits(step.size);
}

/// Fills the elements that the mask leaves out from the destination, or with zeros.
void apply_mask(VectorStep& step) {
  const bool blends = step.operation == O::blend_by_mask;
  if (step.form.mask == 0 && !blends) {
    return;
  }
  const bool one = step.form.scalar || step.operation == O::move_low;
  if (!step.mask.known) {
    step.result.known = one ? step.result.known & ~low_bits(step.element) : 0;
    return;
  }
  const std::uint64_t mask = one ? step.mask.bits | ~std::uint64_t{1} : step.mask.bits;
  const Vector rest = step.form.zeroing ? of_value(0, true) : blends ? step.left : step.before;
  merge(step.result, rest, ~bytes_of_mask(mask, step.element));
}

}  // namespace

/// An instruction and its operands, apart from the vector registers.
struct VectorUnit::Run {
  const DecodedInstruction& instruction;
  Emulator& emulator;
  Value address;
  LookaheadMemory& memory;
};

Vector VectorUnit::read_memory(const Run& run, const VectorForm& form) {
  Vector out = of_value(0, true);
  const unsigned width = run.instruction.width;
  if (!run.address.known || width == 0 || !loads(run.instruction.kind())) {
    return nothing_known();
  }
  const std::uint64_t known = run.memory.load_bytes(run.address.bits, width, out.byte);
  out.known = (out.known & ~low_bits(width)) | known;
  if (!form.broadcasts || width > 8) {
    return out;
  }
  const unsigned element = width;
  const std::uint64_t value = element_at(out, 0, element);
  const bool is_known = element_known(out, 0, element);
  for (unsigned i = 0; i < Vector::bytes / element; ++i) {
    set_element(out, i, element, value, is_known);
  }
  return out;
}

/// Returns an operand; of a general register `element` bytes count.
Vector VectorUnit::read(const Run& run, Place place, unsigned element) {
  const VectorForm form = VectorForm::unpack(run.instruction.immediate);
  if (is_vector(place)) {
    return registers_.vector(vector_number(place));
  }
  if (is_mask(place)) {
    const MaskRegister& mask = registers_.mask(vector_number(place));
    return of_value(mask.bits, mask.known);
  }
  if (place == Place::memory) {
    return read_memory(run, form);
  }
  if (place == Place::immediate) {
    return of_value(form.immediate, true);
  }
  if (place == Place::none) {
    return of_value(0, true);
  }
  const Value value = run.emulator.get(place, element);
  return of_value(value.bits, value.known);
}

VectorStep VectorUnit::prepare(Run& run) {
  const DecodedInstruction& instruction = run.instruction;
  VectorStep step;
  step.operation = vector_operation(instruction);
  step.form = VectorForm::unpack(instruction.immediate);
  step.size = instruction.size;
  step.element = instruction.source_size == 0 ? 1 : instruction.source_size;
  step.result_bytes = step.size;
  step.mode = registers_.mode;
  step.mode_known = registers_.mode_known;
  step.same_source = instruction.source == instruction.second && is_vector(instruction.source);
  step.from_memory = instruction.second == Place::memory;
  if (step.form.mask != 0) {
    step.mask = registers_.mask(step.form.mask);
  }
  step.before = is_vector(instruction.destination) ? read(run, instruction.destination, step.element) : nothing_known();
  step.left = read(run, instruction.source, step.element);
  step.right =
      instruction.second == instruction.source
          ? step.left
          : read(run, instruction.second, step.operation == O::convert_to_float ? step.form.part : step.element);
  step.third = step.operation == O::blend_by_sign ? registers_.vector(step.form.part) : step.before;
  step.result = nothing_known();
  return step;
}

/// To general registers.
bool VectorUnit::to_general(Run& run, const VectorStep& step) {
  const Place destination = run.instruction.destination;
  std::uint64_t value = 0;
  switch (step.operation) {
    case O::move_signs:
      value = signs_of(step, step.right);
      if (!all_known(step, step.right)) {
        return false;
      }
      break;
    case O::convert_to_int:
    case O::truncate_to_int:
      if (!convert_to_integer(step, value)) {
        return false;
      }
      break;
    default:
      value = element_at(step.result, 0, step.element);
      if (!element_known(step.result, 0, step.element)) {
        return false;
      }
  }
  run.emulator.set(destination, 8, {value, true});
  return true;
}

bool VectorUnit::to_flags(Run& run, const VectorStep& step) {
  std::uint64_t flags = 0;
  const bool signs = step.operation == O::test_signs_to_flags;
  const bool masks = step.operation == O::mask_or_to_flags || step.operation == O::mask_test_to_flags;
  if (step.operation == O::compare_to_flags) {
    if (!in_target::compare_to_flags(step, flags)) {
      return false;
    }
  } else if (masks) {
    const std::uint64_t ones = size_mask(step.element);
    const std::uint64_t left = low_word(step.left) & ones;
    const std::uint64_t right = low_word(step.right) & ones;
    const bool either = step.operation == O::mask_or_to_flags;
    if (!element_known(step.left, 0, 8) || !element_known(step.right, 0, 8)) {
      return false;
    }
    flags |= (either ? left | right : left & right) == 0 ? std::uint64_t{flag_zero} : 0;
    flags |= (either ? (left | right) == ones : (~left & right) == 0) ? std::uint64_t{flag_carry} : 0;
  } else {
    std::uint64_t both = 0;
    std::uint64_t only_right = 0;
    for (unsigned i = 0; i < step.count(); ++i) {
      const std::uint64_t counts = signs ? std::uint64_t{1} << (8 * step.element - 1) : ~std::uint64_t{0};
      both |= element_at(step.left, i, step.element) & element_at(step.right, i, step.element) & counts;
      only_right |= ~element_at(step.left, i, step.element) & element_at(step.right, i, step.element) & counts;
    }
    if (!all_known(step, step.left) || !all_known(step, step.right)) {
      return false;
    }
    flags = (both == 0 ? std::uint64_t{flag_zero} : 0) | (only_right == 0 ? std::uint64_t{flag_carry} : 0);
  }
  run.emulator.set_flags(flags);
  return true;
}

/// Executes operations on mask registers. True: it was one of these, and the result's low 8 bytes are made.
bool VectorUnit::on_masks(Run& run, VectorStep& step) {
  const std::uint64_t ones = size_mask(step.element);  // kmovb: a bit each of 8 elements
  const unsigned bits = 8 * step.element;
  const std::uint64_t left = low_word(step.left);
  const std::uint64_t right = low_word(step.right);
  const unsigned by = step.form.immediate;
  const bool same = run.instruction.source == run.instruction.second;
  bool known = element_known(step.left, 0, 8) && element_known(step.right, 0, 8);
  std::uint64_t made = 0;
  switch (step.operation) {
    case O::mask_move:
      made = right & ones;
      known = (step.right.known & ones) == ones || element_known(step.right, 0, step.element);
      break;
    case O::mask_and:
      made = left & right & ones;
      break;
    case O::mask_and_not:
      made = ~left & right & ones;
      break;
    case O::mask_or:
      made = (left | right) & ones;
      break;
    case O::mask_xor:
      made = (left ^ right) & ones;
      known = known || same;
      break;
    case O::mask_xnor:
      made = ~(left ^ right) & ones;
      known = known || same;
      break;
    case O::mask_not:
      made = ~right & ones;
      break;
    case O::mask_add:
      made = (left + right) & ones;
      break;
    case O::mask_shift_left:
      made = by < bits ? right << by & ones : 0;
      break;
    case O::mask_shift_right:
      made = by < bits ? (right & ones) >> by : 0;
      break;
    case O::mask_unpack:
      made = (left & ones) << bits | (right & ones);
      break;
    case O::vector_to_mask:
      made = signs_of(step, step.right);
      known = all_known(step, step.right);
      break;
    default:
      return false;
  }
  set_element(step.result, 0, 8, made, known);
  return true;
}

/// Executes operations without an ordinary result. True: it was one of these.
bool VectorUnit::execute_apart(Run& run, VectorStep& step) {
  switch (step.operation) {
    case O::zero_upper:
    case O::zero_all:
      for (unsigned r = 0; r < 16; ++r) {
        const std::uint64_t cleared = step.operation == O::zero_all ? ~std::uint64_t{0} : ~low_bits(xmm_bytes);
        merge(registers_.vector(r), of_value(0, true), cleared);
      }
      return true;
    case O::load_mode:
      registers_.mode_known = element_known(step.left, 0, 4);
      registers_.mode = static_cast<std::uint32_t>(low_word(step.left));
      return true;
    case O::compare_to_flags:
    case O::test_to_flags:
    case O::test_signs_to_flags:
    case O::mask_or_to_flags:
    case O::mask_test_to_flags:
      if (!to_flags(run, step)) {
        run.emulator.forget_flags();
      }
      return true;
    default:
      return false;
  }
}

/// False: nothing of the result is known.
bool VectorUnit::compute(Run& run, VectorStep& step) {
  const bool to_register = is_register(run.instruction.destination);
  switch (step.operation) {
    case O::move_signs:
      return true;
    case O::convert_to_int:
    case O::truncate_to_int:
      return to_register || compute_elements(step, processor_.has);
    case O::mask_to_vector:
      for (unsigned i = 0; i < step.count(); ++i) {
        const bool set = (low_word(step.right) >> i & 1U) != 0;
        set_element(step.result, i, step.element, set ? ~std::uint64_t{0} : 0, step.right.known != 0);
      }
      return true;
    case O::blend_by_mask:
      step.result = step.right;
      return true;
    default:
      break;
  }
  if (is_mask(run.instruction.destination)) {
    return on_masks(run, step) || compare_to_mask(step);
  }
  return on_masks(run, step) || compute_by_processor(step, processor_.has) || permute(step) ||
         compute_elements(step, processor_.has);
}

void VectorUnit::write_vector(Place place, const VectorStep& step) {
  Vector& to = registers_.vector(vector_number(place));
  const std::uint64_t written = low_bits(step.result_bytes);
  merge(to, step.result, written);
  if (step.form.clears_upper) {
    merge(to, of_value(0, true), ~written);
  }
}

void VectorUnit::write_memory(const Run& run, const VectorStep& step) {
  const unsigned width = run.instruction.width;
  if (!run.address.known || width == 0) {
    run.memory.store_anywhere();
    return;
  }
  if (step.form.mask != 0 && !step.mask.known) {
    run.memory.store_bytes(run.address.bits, width, step.result.byte, 0, ~std::uint64_t{0});
    return;
  }
  const std::uint64_t written = step.form.mask != 0 ? bytes_of_mask(step.mask.bits, step.element) : ~std::uint64_t{0};
  run.memory.store_bytes(run.address.bits, width, step.result.byte, step.result.known, written);
}

void VectorUnit::write(Run& run, VectorStep& step) {
  const Place destination = run.instruction.destination;
  if (destination == Place::memory) {
    write_memory(run, step);
  } else if (is_vector(destination)) {
    apply_mask(step);
    write_vector(destination, step);
  } else if (is_mask(destination)) {
    registers_.mask(vector_number(destination)) = {low_word(step.result), element_known(step.result, 0, 8)};
  } else if (!to_general(run, step)) {
    run.emulator.set(destination, 8, {});
  }
}

/// Makes the results unknown, as after an instruction that is not followed.
void VectorUnit::forget_results(Run& run) {
  const DecodedInstruction& instruction = run.instruction;
  run.emulator.execute(instruction, 0, {});
  if (is_vector(instruction.destination)) {
    registers_.vector(vector_number(instruction.destination)).known = 0;
  } else if (is_mask(instruction.destination)) {
    registers_.mask(vector_number(instruction.destination)).known = false;
  } else if (instruction.destination == Place::memory) {
    if (run.address.known && instruction.width != 0) {
      run.memory.store(run.address.bits, instruction.width, {});
    } else {
      run.memory.store_anywhere();
    }
  }
}

void VectorUnit::execute(const DecodedInstruction& instruction, Emulator& emulator, Value address,
                         LookaheadMemory& memory) {
  Run run{instruction, emulator, address, memory};
  VectorStep step = prepare(run);
  if (execute_apart(run, step)) {
    return;
  }
  // A half that is stored: the upper one is moved down.
  const bool stores_half =
      instruction.destination == Place::memory && (step.operation == O::move_high || step.operation == O::move_lower);
  if (stores_half) {
    step.operation = step.operation == O::move_high ? O::high_to_low : O::move_lower;
    step.left = step.right;
  }
  if (compute(run, step)) {
    write(run, step);
  } else {
    forget_results(run);
  }
}

void VectorUnit::passed_by(const DecodedInstruction& instruction) {
  if (instruction.has(trait_writes_vectors)) {
    registers_.forget_all();
  } else if (is_vector(instruction.destination)) {
    registers_.vector(vector_number(instruction.destination)).known = 0;
  } else if (is_mask(instruction.destination)) {
    registers_.mask(vector_number(instruction.destination)).known = false;
  }
}

}  // namespace crosstalk::in_target
