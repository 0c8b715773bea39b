// SPDX-License-Identifier: Apache-2.0
// An instruction as the access finder needs it: 24 bytes, made from Zydis's much larger description.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/registers.h"

namespace crosstalk::in_target {

/// What an instruction computes, as far as the interpreter follows it.
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
  byte_swap,
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
};

/// Where a value comes from or goes to: 0..15 a register in DWARF order, 16..19 its bits 8..15 (ah, dh, ch, bh).
enum class Place : std::uint8_t {
  high_byte = 16,
  immediate = 32,
  memory = 33,
  none = 34,      // absent
  elsewhere = 35  // a vector, mask, control, ... register
};
[[nodiscard]] constexpr bool is_register(Place p) { return static_cast<unsigned>(p) < 16; }
[[nodiscard]] constexpr bool is_high_byte(Place p) {
  return static_cast<unsigned>(p) >= 16 && static_cast<unsigned>(p) < 20;
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
};

inline constexpr std::uint8_t no_register = 255;
inline constexpr std::uint8_t rip_register = static_cast<std::uint8_t>(Register::rip);

struct DecodedInstruction {
  std::uint8_t length = 0;
  Operation operation = Operation::stop;
  std::uint8_t size = 0;         // bytes of the operation: 1, 2, 4, 8
  std::uint8_t source_size = 0;  // bytes of the source, where it differs
  Place destination = Place::none;
  Place source = Place::none;
  Place second = Place::none;  // third operand of imul and of the flagless shifts
  std::uint8_t condition = 0;  // of set_if, move_if, jump_if: the low four bits of the opcode
  std::uint8_t base = no_register;
  std::uint8_t index = no_register;
  std::uint8_t scale_and_kind = 0;  // scale, or'ed with AccessKind << 4
  std::uint8_t width = 0;           // bytes accessed; 0: more than 64, or not fixed
  std::uint16_t clobbers = 0;       // registers written, other than by what `operation` computes
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
};
static_assert(sizeof(DecodedInstruction) == 24);

/// Decodes the instruction at the front of `bytes` bytes of 64-bit code. False: it is none, or cut short.
/// Pure and signal-safe. Uses about a kilobyte of stack.
bool decode_instruction(const std::uint8_t* code, std::size_t bytes, DecodedInstruction& out);

}  // namespace crosstalk::in_target
