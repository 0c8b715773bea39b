// SPDX-License-Identifier: Apache-2.0
// Registers and flags of which some are known, and the integer instructions that compute with them. Memory, the
// stack and control flow are the caller's.
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/access/decoded_instruction.h"

namespace crosstalk::in_target {

/// Bits that may be known. Unknown ones have bits = 0.
struct Value {
  std::uint64_t bits = 0;
  bool known = false;
};

enum Flag : std::uint64_t {
  flag_carry = 1U << 0U,
  flag_parity = 1U << 2U,
  flag_zero = 1U << 6U,
  flag_sign = 1U << 7U,
  flag_direction = 1U << 10U,
  flag_overflow = 1U << 11U,
};
/// The flags that conditions test; the adjust flag is not followed.
inline constexpr std::uint64_t condition_flags =
    std::uint64_t{flag_carry} | flag_parity | flag_zero | flag_sign | flag_overflow;

enum class Truth : std::uint8_t { no, yes, unknown };

/// True if condition code 0..15, as in the low bits of jcc's opcode, holds with these flags.
[[nodiscard]] constexpr bool condition_holds(std::uint8_t condition, std::uint64_t flags) {
  const bool less = ((flags & flag_sign) != 0) != ((flags & flag_overflow) != 0);
  const bool zero = (flags & flag_zero) != 0;
  const bool carry = (flags & flag_carry) != 0;
  bool holds = false;
  switch (condition >> 1U & 7U) {
    case 0:
      holds = (flags & flag_overflow) != 0;
      break;
    case 1:
      holds = carry;
      break;
    case 2:
      holds = zero;
      break;
    case 3:
      holds = carry || zero;
      break;
    case 4:
      holds = (flags & flag_sign) != 0;
      break;
    case 5:
      holds = (flags & flag_parity) != 0;
      break;
    case 6:
      holds = less;
      break;
    default:
      holds = less || zero;
      break;
  }
  return holds != ((condition & 1U) != 0);
}
[[nodiscard]] constexpr bool tests_parity(std::uint8_t condition) { return (condition >> 1U & 7U) == 5; }

class Emulator {
 public:
  /// Everything is known.
  Emulator(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base);

  [[nodiscard]] Value get(Register r) const { return get(place_of(r), 8); }
  /// The low `size` bytes of a register; unknown for any other place.
  [[nodiscard]] Value get(Place place, unsigned size) const;
  /// Writes a register as an instruction with operands of `size` bytes does: 4 bytes clear the upper half.
  void set(Place place, unsigned size, Value value);
  void set(Register r, Value value) { set(place_of(r), 8, value); }
  void forget(std::uint16_t registers);
  void forget_flags() { flags_known_ &= ~condition_flags; }
  /// Makes all flags that conditions test known; sets those in `set`.
  void set_flags(std::uint64_t set);
  void forget_direction() { forget_flag(flag_direction); }
  /// Tells if string operations step towards lower addresses.
  [[nodiscard]] Truth runs_down() const;

  /// Condition code 0..15, as in the low bits of jcc's opcode.
  [[nodiscard]] Truth holds(std::uint8_t condition) const;
  [[nodiscard]] bool flags_unknown() const { return (flags_known_ & condition_flags) == 0; }
  /// The effective address; `after` is the address of the next instruction.
  [[nodiscard]] Value address(const DecodedInstruction& instruction, std::uint64_t after) const;

  /// Returns the value of an operand of `size` bytes; `memory` is the memory operand's value.
  [[nodiscard]] Value fetch(const DecodedInstruction& instruction, Place place, unsigned size, Value memory) const;
  /// Returns the address that a jump or a call leads to.
  [[nodiscard]] Value target(const DecodedInstruction& instruction, std::uint64_t after, Value memory) const;
  /// Puts a popped value into the destination. A popf makes all flags unknown.
  void receive(const DecodedInstruction& instruction, Value popped);
  /// Adds to the stack pointer the bytes of arguments that a ret removes.
  void drop_arguments(const DecodedInstruction& instruction);

  /// Executes an instruction other than push, pop, leave, strings and transfers of control (which do nothing
  /// here). `memory` is the value of the memory operand, if it is read; returns the value to be stored there.
  Value execute(const DecodedInstruction& instruction, std::uint64_t after, Value memory);
  /// Executes cmpxchg8b or cmpxchg16b; the operand is two halves of `size` bytes. `low` and `high` are the old halves,
  /// and become the halves to store.
  void exchange_wide(unsigned size, Value& low, Value& high);

  /// False when something that is known in both differs.
  [[nodiscard]] bool agrees_with(const Emulator& other) const;
  /// True if something is known in both that is not known in `before`, so that agreement is evidence.
  [[nodiscard]] bool comparable(const Emulator& other, const Emulator& before) const;

 private:
  struct Operands {
    Value destination, source, second;
  };
  [[nodiscard]] Operands fetch_operands(const DecodedInstruction& instruction, Value memory) const;
  bool execute_apart(const DecodedInstruction& instruction, const Operands& operands);
  Value compute(const DecodedInstruction& instruction, const Operands& operands);
  Value step_by_one(const DecodedInstruction& instruction, Value value);
  Value negate(const DecodedInstruction& instruction, Value value);
  void test_bit(unsigned size, Value value, Value bit);
  Value change_bit(const DecodedInstruction& instruction, Value value, Value bit);
  Value exchange_add(const DecodedInstruction& instruction, Value found, Value added);
  Value compare_exchange(const DecodedInstruction& instruction, Value found, Value wanted);
  Value scan(const DecodedInstruction& instruction, Value value);
  Value isolate(const DecodedInstruction& instruction, Value value, Value other);
  Value shift_double(const DecodedInstruction& instruction, Value value, Value filling, Value count);
  bool change_carry(Operation operation);
  Value arithmetic(const DecodedInstruction& instruction, Value a, Value b);
  Value logic(const DecodedInstruction& instruction, Value a, Value b);
  Value shift(const DecodedInstruction& instruction, Value value, Value count);
  Value rotate(const DecodedInstruction& instruction, Value value, Value count);
  Value multiply(unsigned size, Value a, Value b);
  void multiply_wide(const DecodedInstruction& instruction, Value factor);
  void divide(const DecodedInstruction& instruction, Value divisor);
  Value sum(unsigned size, std::uint64_t a, std::uint64_t b, bool carry);
  Value difference(unsigned size, std::uint64_t a, std::uint64_t b, bool borrow);
  void set_flag(Flag flag, bool on);
  void forget_flag(Flag flag) { flags_known_ &= ~static_cast<std::uint64_t>(flag); }
  void set_result_flags(unsigned size, std::uint64_t result);

  std::uint64_t value_[16];
  std::uint64_t flags_;
  std::uint64_t flags_known_;
  std::uint64_t fs_base_;
  std::uint8_t known_[16];  // a bit for each byte of the register
};

/// The low `size` bytes set.
[[nodiscard]] constexpr std::uint64_t size_mask(unsigned size) {
  return size >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size)) - 1;
}
[[nodiscard]] constexpr bool sign_bit(std::uint64_t bits, unsigned size) { return (bits >> (8 * size - 1) & 1U) != 0; }
[[nodiscard]] constexpr std::uint64_t sign_extend(std::uint64_t bits, unsigned size) {
  const unsigned shift = size >= 8 ? 0 : 64 - 8 * size;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << shift) >> shift);
}

}  // namespace crosstalk::in_target
