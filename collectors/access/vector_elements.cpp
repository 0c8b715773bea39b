// SPDX-License-Identifier: Apache-2.0
// Conversions, comparisons and other operations that are computed element by element.
#include <emmintrin.h>

#include <bit>

#include "collectors/access/emulator.h"
#include "collectors/access/vector_float.h"
#include "collectors/access/vector_step.h"

namespace crosstalk::in_target {

namespace {

using O = VectorOperation;

__m128i as_vector(std::uint64_t bits) { return _mm_cvtsi64_si128(static_cast<std::int64_t>(bits)); }
std::uint64_t low_of(__m128i vector) { return static_cast<std::uint64_t>(_mm_cvtsi128_si64(vector)); }

// NOLINTBEGIN(hicpp-no-assembler): one instruction each, which the compiler must not move out of the thread's mode

/// An integer of `from` bytes to a number of `to`.
std::uint64_t float_of(std::uint64_t bits, unsigned from, unsigned to) {
  __m128i out = _mm_setzero_si128();
  const auto narrow = static_cast<std::uint32_t>(bits);
  if (to == 8 && from == 8) {
    asm volatile("cvtsi2sdq %1, %0" : "+x"(out) : "r"(bits));
  } else if (to == 8) {
    asm volatile("cvtsi2sdl %1, %0" : "+x"(out) : "r"(narrow));
  } else if (from == 8) {
    asm volatile("cvtsi2ssq %1, %0" : "+x"(out) : "r"(bits));
  } else {
    asm volatile("cvtsi2ssl %1, %0" : "+x"(out) : "r"(narrow));
  }
  return low_of(out);
}

std::uint64_t double_of(std::uint64_t single) {
  __m128i out = _mm_setzero_si128();
  asm volatile("cvtss2sd %1, %0" : "+x"(out) : "x"(as_vector(single)));
  return low_of(out);
}

std::uint64_t single_of(std::uint64_t number) {
  __m128i out = _mm_setzero_si128();
  asm volatile("cvtsd2ss %1, %0" : "+x"(out) : "x"(as_vector(number)));
  return low_of(out);
}

/// A number of `from` bytes to an integer of `to`, rounded by the mode.
std::uint64_t rounded(std::uint64_t bits, unsigned from, unsigned to) {
  const __m128i in = as_vector(bits);
  std::uint64_t wide = 0;
  std::uint32_t narrow = 0;
  if (from == 8 && to == 8) {
    asm volatile("cvtsd2si %1, %0" : "=r"(wide) : "x"(in));
  } else if (from == 8) {
    asm volatile("cvtsd2si %1, %0" : "=r"(narrow) : "x"(in));
  } else if (to == 8) {
    asm volatile("cvtss2si %1, %0" : "=r"(wide) : "x"(in));
  } else {
    asm volatile("cvtss2si %1, %0" : "=r"(narrow) : "x"(in));
  }
  return to == 8 ? wide : narrow;
}

std::uint64_t truncated(std::uint64_t bits, unsigned from, unsigned to) {
  const __m128i in = as_vector(bits);
  std::uint64_t wide = 0;
  std::uint32_t narrow = 0;
  if (from == 8 && to == 8) {
    asm volatile("cvttsd2si %1, %0" : "=r"(wide) : "x"(in));
  } else if (from == 8) {
    asm volatile("cvttsd2si %1, %0" : "=r"(narrow) : "x"(in));
  } else if (to == 8) {
    asm volatile("cvttss2si %1, %0" : "=r"(wide) : "x"(in));
  } else {
    asm volatile("cvttss2si %1, %0" : "=r"(narrow) : "x"(in));
  }
  return to == 8 ? wide : narrow;
}

/// To a whole number as the mode says. Needs SSE4.1.
std::uint64_t whole_number(std::uint64_t bits, unsigned bytes) {
  __m128i out = _mm_setzero_si128();
  if (bytes == 8) {
    asm volatile("roundsd $4, %1, %0" : "+x"(out) : "x"(as_vector(bits)));
  } else {
    asm volatile("roundss $4, %1, %0" : "+x"(out) : "x"(as_vector(bits)));
  }
  return low_of(out);
}

struct Relation {
  bool zero, parity, carry;  // the flags: equal, not numbers, less
};

/// The flags are the same by comis, which notes more exceptions.
Relation relate(std::uint64_t left, std::uint64_t right, unsigned bytes, bool quiet) {
  Relation out{};
  const __m128i a = as_vector(left);
  const __m128i b = as_vector(right);
  if (bytes == 8 && quiet) {
    asm volatile("ucomisd %4, %3" : "=@ccz"(out.zero), "=@ccp"(out.parity), "=@ccc"(out.carry) : "x"(a), "x"(b));
  } else if (bytes == 8) {
    asm volatile("comisd %4, %3" : "=@ccz"(out.zero), "=@ccp"(out.parity), "=@ccc"(out.carry) : "x"(a), "x"(b));
  } else if (quiet) {
    asm volatile("ucomiss %4, %3" : "=@ccz"(out.zero), "=@ccp"(out.parity), "=@ccc"(out.carry) : "x"(a), "x"(b));
  } else {
    asm volatile("comiss %4, %3" : "=@ccz"(out.zero), "=@ccp"(out.parity), "=@ccc"(out.carry) : "x"(a), "x"(b));
  }
  return out;
}
// NOLINTEND(hicpp-no-assembler)

/// Predicates of cmpps (Intel SDM vol. 2, table 3-1): for which of less, equal, greater and unordered, from bit 0 on,
/// each holds. The upper half of the 32 says only which of them signal.
bool float_holds(unsigned predicate, const Relation& relation) {
  constexpr std::uint8_t holds[16] = {2, 1, 3, 8, 13, 14, 12, 7, 10, 9, 11, 0, 5, 6, 4, 15};
  const unsigned which = relation.parity ? 3U : relation.zero ? 1U : relation.carry ? 0U : 2U;
  return (holds[predicate & 15U] >> which & 1U) != 0;
}
/// True if the predicate signals on quiet NaNs, too.
bool signals(unsigned predicate) {
  constexpr std::uint32_t which = 0x9999'6666;
  return (which >> (predicate & 31U) & 1U) != 0;
}

struct Conversion {
  unsigned from, to, count;
};

std::uint64_t converted(O operation, std::uint64_t bits, unsigned from, unsigned to) {
  switch (operation) {
    case O::convert_to_float:
      return float_of(bits, from, to);
    case O::convert_to_double:
      return double_of(bits);
    case O::convert_to_single:
      return single_of(bits);
    case O::convert_to_int:
      return rounded(bits, from, to);
    case O::truncate_to_int:
      return truncated(bits, from, to);
    default:
      return sign_extend(bits, from);
  }
}

/// Elements become wider or narrower; what of the lowest 16 bytes is not made is zero.
void convert(VectorStep& step, const Conversion& by) {
  const unsigned made = by.count * by.to;
  step.result_bytes = made < 16 ? 16 : made;
  step.result.known = 0;
  for (unsigned i = by.count; i * by.to < step.result_bytes; ++i) {
    set_element(step.result, i, by.to, 0, true);
  }
  for (unsigned i = 0; i < by.count; ++i) {
    const std::uint64_t bits = element_at(step.right, i, by.from);
    const std::uint64_t value =
        step.operation == O::extend_zero ? bits : converted(step.operation, bits, by.from, by.to);
    set_element(step.result, i, by.to, value, element_known(step.right, i, by.from));
  }
}

bool is_conversion(O operation) { return operation >= O::convert_to_float && operation <= O::truncate_to_int; }

/// A scalar keeps the left operand's other elements.
bool convert_any(VectorStep& step) {
  const bool extends = step.operation == O::extend_zero || step.operation == O::extend_sign;
  if (!extends && !is_conversion(step.operation)) {
    return false;
  }
  const unsigned from = step.form.part;
  if (extends) {
    convert(step, {from, step.element, step.count()});
    return true;
  }
  if (!step.mode_known) {
    return false;
  }
  const ThreadFloatMode mode(step.mode);
  if (step.form.scalar) {
    step.result = step.left;
    step.result_bytes = 16;
    const std::uint64_t value = converted(step.operation, element_at(step.right, 0, from), from, step.element);
    set_element(step.result, 0, step.element, value, element_known(step.right, 0, from));
  } else {
    const unsigned widest = from > step.element ? from : step.element;
    convert(step, {from, step.element, step.size / widest});
  }
  return !mode.would_trap();
}

/// The immediate says which way, unless it leaves that to the mode.
bool round_any(VectorStep& step, std::uint32_t has) {
  if (step.operation != O::round || !step.mode_known || (has & ProcessorFeatures::sse4) == 0) {
    return false;
  }
  constexpr std::uint32_t by_mode = 4;
  constexpr std::uint32_t quiet = 8;
  constexpr unsigned rounding_at = 13;
  const std::uint32_t immediate = step.form.immediate;
  const std::uint32_t given = (step.mode & ~(3U << rounding_at)) | (immediate & 3U) << rounding_at;
  const ThreadFloatMode mode((immediate & by_mode) != 0 ? step.mode : given);
  if (step.form.scalar) {
    step.result = step.left;
    step.result_bytes = 16;
  }
  for (unsigned i = 0; i < (step.form.scalar ? 1 : step.count()); ++i) {
    set_element(step.result, i, step.element, whole_number(element_at(step.right, i, step.element), step.element),
                element_known(step.right, i, step.element));
  }
  return !mode.would_trap((immediate & quiet) != 0 ? ThreadFloatMode::inexact : 0);
}

bool both_known(const VectorStep& step, unsigned i) {
  return element_known(step.left, i, step.element) && element_known(step.right, i, step.element);
}

/// Compares as cmpps and the like: sets all bits of an element for which the predicate holds.
bool compare_floats(VectorStep& step) {
  if (step.operation != O::compare_float || !step.mode_known) {
    return false;
  }
  const unsigned predicate = step.form.immediate & (step.form.clears_upper ? 31U : 7U);
  const ThreadFloatMode mode(step.mode);
  if (step.form.scalar) {
    step.result = step.left;
    step.result_bytes = 16;
  }
  for (unsigned i = 0; i < (step.form.scalar ? 1 : step.count()); ++i) {
    const Relation relation = relate(element_at(step.left, i, step.element), element_at(step.right, i, step.element),
                                     step.element, !signals(predicate));
    set_element(step.result, i, step.element, float_holds(predicate, relation) ? ~std::uint64_t{0} : 0,
                both_known(step, i));
  }
  return !mode.would_trap();
}

bool shift_each(VectorStep& step) {
  const unsigned bits = 8 * step.element;
  for (unsigned i = 0; i < step.count(); ++i) {
    const std::uint64_t by = element_at(step.right, i, step.element);
    const std::uint64_t value = element_at(step.left, i, step.element);
    std::uint64_t result = 0;
    switch (step.operation) {
      case O::shift_left_each:
        result = by < bits ? value << by : 0;
        break;
      case O::shift_right_each:
        result = by < bits ? value >> by : 0;
        break;
      case O::shift_right_signed_each:
        result = static_cast<std::uint64_t>(static_cast<std::int64_t>(sign_extend(value, step.element)) >>
                                            (by < bits ? by : bits - 1));
        break;
      default:
        return false;
    }
    set_element(step.result, i, step.element, result, both_known(step, i));
  }
  return true;
}

/// vpternlog: each bit by a table of eight.
bool ternary(VectorStep& step) {
  if (step.operation != O::ternary_logic) {
    return false;
  }
  for (unsigned i = 0; i < step.size / 8; ++i) {
    const std::uint64_t a = element_at(step.before, i, 8);
    const std::uint64_t b = element_at(step.left, i, 8);
    const std::uint64_t c = element_at(step.right, i, 8);
    std::uint64_t result = 0;
    for (unsigned entry = 0; entry < 8; ++entry) {
      if ((step.form.immediate >> entry & 1U) != 0) {
        result |= ((entry & 4U) != 0 ? a : ~a) & ((entry & 2U) != 0 ? b : ~b) & ((entry & 1U) != 0 ? c : ~c);
      }
    }
    set_element(step.result, i, 8, result, true);
  }
  const bool fixed = step.form.immediate == 0 || step.form.immediate == 0xff;
  step.result.known = fixed ? ~std::uint64_t{0} : step.before.known & step.left.known & step.right.known;
  return true;
}

/// Compares integers; the predicate is vpcmpd's.
bool integer_holds(const VectorStep& step, std::uint64_t left, std::uint64_t right) {
  if (step.operation == O::test_and || step.operation == O::test_nand) {
    return ((left & right) != 0) == (step.operation == O::test_and);
  }
  const auto a = static_cast<std::int64_t>(sign_extend(left, step.element));
  const auto b = static_cast<std::int64_t>(sign_extend(right, step.element));
  const bool less = step.operation == O::compare_signed ? a < b : left < right;
  const unsigned predicate = step.form.immediate & 7U;
  const bool tests[4] = {left == right, less, less || left == right, false};
  return tests[predicate & 3U] != ((predicate & 4U) != 0);
}

}  // namespace

bool compute_elements(VectorStep& step, std::uint32_t has) {
  return convert_any(step) || round_any(step, has) || compare_floats(step) || shift_each(step) || ternary(step);
}

/// A bit that the instruction's mask leaves out is zero.
bool compare_to_mask(VectorStep& step) {
  const bool floats = step.operation == O::compare_float;
  if (!step.mask.known || (floats && !step.mode_known)) {
    return false;
  }
  const unsigned predicate = step.form.immediate & 31U;
  const ThreadFloatMode mode(floats ? step.mode : _mm_getcsr());
  std::uint64_t bits = 0;
  for (unsigned i = 0; i < (step.form.scalar ? 1 : step.count()); ++i) {
    if ((step.mask.bits >> i & 1U) == 0) {
      continue;
    }
    if (!both_known(step, i)) {
      return false;
    }
    const std::uint64_t left = element_at(step.left, i, step.element);
    const std::uint64_t right = element_at(step.right, i, step.element);
    const bool holds = floats ? float_holds(predicate, relate(left, right, step.element, !signals(predicate)))
                              : integer_holds(step, left, right);
    bits |= (holds ? std::uint64_t{1} : 0) << i;
  }
  set_element(step.result, 0, 8, bits, true);
  return !floats || !mode.would_trap();
}

bool compare_to_flags(const VectorStep& step, std::uint64_t& flags) {
  if (!step.mode_known || !both_known(step, 0)) {
    return false;
  }
  const ThreadFloatMode mode(step.mode);
  // Executes comis for ucomis, too: it notes more exceptions, so at worst the flags count as unknown.
  const Relation relation =
      relate(element_at(step.left, 0, step.element), element_at(step.right, 0, step.element), step.element, false);
  flags = (relation.zero ? std::uint64_t{flag_zero} : 0) | (relation.parity ? std::uint64_t{flag_parity} : 0) |
          (relation.carry ? std::uint64_t{flag_carry} : 0);
  return !mode.would_trap();
}

bool convert_to_integer(const VectorStep& step, std::uint64_t& result) {
  if (!step.mode_known || !element_known(step.right, 0, step.form.part)) {
    return false;
  }
  const ThreadFloatMode mode(step.mode);
  const std::uint64_t bits = element_at(step.right, 0, step.form.part);
  result = step.operation == O::convert_to_int ? rounded(bits, step.form.part, step.element)
                                               : truncated(bits, step.form.part, step.element);
  return !mode.would_trap();
}

}  // namespace crosstalk::in_target
