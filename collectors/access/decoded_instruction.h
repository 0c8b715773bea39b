// SPDX-License-Identifier: Apache-2.0
// An instruction as the access finder needs it: 24 bytes, made from Zydis's much larger description
// (instruction_decoder.h).
#pragma once

#include <cstdint>

#include "base/registers.h"

namespace crosstalk::in_target {

/// The computation of an instruction, as far as the interpreter follows it.
enum class Operation : std::uint8_t {
  other,  // writes `clobbers` and perhaps flags and memory, with values that are not computed
  stop,   // nothing is known after it: system calls, traps, changes of segment
  nop,
  move,
  move_signed,
  exchange,
  lea,
  add,
  add_carry,
  subtract,
  subtract_borrow,
  compare,
  negate,
  increment,
  decrement,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  test,
  shift_left,
  shift_right,
  shift_right_signed,
  rotate_left,
  rotate_right,
  bit_test,
  bit_set,
  bit_reset,
  bit_complement,
  byte_swap,
  exchange_add,
  compare_exchange,
  compare_exchange_wide,  // cmpxchg8b, cmpxchg16b
  scan_forward,           // bsf, bsr: nothing is known of a zero's
  scan_reverse,
  count_trailing,
  count_leading,
  count_ones,
  and_not,
  reset_lowest,    // blsr
  isolate_lowest,  // blsi
  mask_lowest,     // blsmsk
  zero_high_bits,  // bzhi
  shift_double_left,
  shift_double_right,
  multiply,  // destination = two factors
  multiply_wide,
  multiply_wide_signed,
  divide,
  divide_signed,  // rdx:rax
  sign_fill,      // cwd, cdq, cqo
  set_if,
  move_if,  // `condition`
  jump_if,  // to `immediate`, an offset from the next instruction
  jump,
  call,  // to `source`
  ret,
  push,
  pop,
  leave,
  string,  // movs, cmps, scas, lods, stos
  clear_direction,
  set_direction,
  clear_carry,
  set_carry,
  complement_carry,
  vector,  // of vector, mask and floating-point registers: vector_operation.h says which
};

[[nodiscard]] constexpr bool uses_stack(Operation operation) {
  return operation == Operation::push || operation == Operation::pop || operation == Operation::leave ||
         operation == Operation::call || operation == Operation::ret;
}

/// The source or destination of a value: 0..15 a register in DWARF order, 16..19 its bits 8..15 (ah, dh, ch, bh).
enum class Place : std::uint8_t {
  high_byte = 16,
  immediate = 32,
  memory = 33,
  none = 34,       // absent
  elsewhere = 35,  // a control, segment, ... register
  vector = 64,     // 64..95: a vector register
  mask = 96,       // 96..103
};
[[nodiscard]] constexpr bool is_register(Place p) { return static_cast<unsigned>(p) < 16; }
[[nodiscard]] constexpr bool is_high_byte(Place p) {
  return static_cast<unsigned>(p) >= 16 && static_cast<unsigned>(p) < 20;
}
[[nodiscard]] constexpr bool is_vector(Place p) {
  return static_cast<unsigned>(p) >= 64 && static_cast<unsigned>(p) < 96;
}
[[nodiscard]] constexpr bool is_mask(Place p) {
  return static_cast<unsigned>(p) >= 96 && static_cast<unsigned>(p) < 104;
}
/// Returns the number of a vector or mask register.
[[nodiscard]] constexpr std::uint8_t vector_number(Place p) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(p) & 31U);
}
[[nodiscard]] constexpr Place place_of(Register r) { return static_cast<Place>(r); }

enum Traits : std::uint16_t {
  trait_explicit_access = 1,     // has a memory operand that is accessed
  trait_fs = 2,                  // relative to the fs base
  trait_address_unknown = 4,     // gs segment, vector of addresses
  trait_address32 = 8,           // effective address cut to 32 bits
  trait_wide_displacement = 16,  // a 64-bit absolute address, in both displacement and immediate
  trait_wide_immediate = 32,     // a 64-bit immediate, in both
  trait_writes_flags = 64,       // status flags, for Operation::other
  trait_repeat = 128,            // rep, repe, repne
  trait_writes_rdi = 256,        // string operation that uses (and moves) rdi
  trait_writes_rsi = 512,        // the same, rsi
  trait_writes_vectors = 1024,   // Operation::other: vector or mask registers other than `destination`
};

inline constexpr std::uint8_t no_register = 255;
inline constexpr std::uint8_t rip_register = static_cast<std::uint8_t>(Register::rip);

struct DecodedInstruction {
  std::uint8_t length = 0;
  Operation operation = Operation::stop;
  std::uint8_t size = 0;         // bytes of the operation: 1, 2, 4, 8
  std::uint8_t source_size = 0;  // bytes of the source, if different
  Place destination = Place::none;
  Place source = Place::none;
  Place second = Place::none;  // third operand of imul and of the flagless shifts
  std::uint8_t condition = 0;  // of set_if, move_if, jump_if: the low four bits of the opcode
  std::uint8_t base = no_register;
  std::uint8_t index = no_register;
  std::uint8_t scale_and_kind = 0;  // scale, or'ed with AccessKind << 4
  std::uint8_t width = 0;           // bytes accessed; 0: more than 64, or not fixed
  std::uint16_t clobbers = 0;       // registers written apart from the result of `operation`
  std::uint16_t traits = 0;
  std::int32_t displacement = 0;
  std::int32_t immediate = 0;

  [[nodiscard]] bool has(Traits trait) const { return (traits & trait) != 0; }
  [[nodiscard]] AccessKind kind() const { return static_cast<AccessKind>(scale_and_kind >> 4U); }
  [[nodiscard]] unsigned scale() const { return scale_and_kind & 15U; }
  [[nodiscard]] std::uint64_t wide() const {
    return static_cast<std::uint32_t>(displacement) | static_cast<std::uint64_t>(static_cast<std::uint32_t>(immediate))
                                                          << 32U;
  }
  [[nodiscard]] std::uint64_t immediate_value() const {
    return has(trait_wide_immediate) ? wide() : static_cast<std::uint64_t>(std::int64_t{immediate});
  }
  /// Bytes that a `ret` takes off the stack after the return address.
  [[nodiscard]] std::uint64_t dropped_arguments() const {
    return source == Place::none && destination == Place::immediate ? immediate_value() & 0xffffU : 0;
  }
};
static_assert(sizeof(DecodedInstruction) == 24);

}  // namespace crosstalk::in_target
