// SPDX-License-Identifier: Apache-2.0
// The operations that are given to the processor: an instruction's own, on 16 bytes at a time, which is how AVX and
// AVX-512 are defined for all of them.
#include <emmintrin.h>

#include <array>

#include "collectors/access/vector_float.h"
#include "collectors/access/vector_step.h"

namespace crosstalk::in_target {

namespace {

enum class Kind : std::uint8_t { binary, scalar, unary, scalar_unary, shift, fused, fused_scalar };
enum class Arithmetic : std::uint8_t { integer, floating };

struct Facts {
  Kind kind;
  Arithmetic arithmetic;
  std::uint8_t needs;  // ProcessorFeatures
  std::uint8_t element;
};

constexpr Facts facts[] = {
#define CROSSTALK_F(name, NAME, element) Facts{Kind::binary, Arithmetic::floating, 0, element},
    CROSSTALK_FLOAT_PACKED(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::scalar, Arithmetic::floating, 0, element},
        CROSSTALK_FLOAT_SCALAR(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::binary, Arithmetic::floating, ProcessorFeatures::sse3, element},
            CROSSTALK_FLOAT_SSE3(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::unary, Arithmetic::floating, 0, element},
                CROSSTALK_FLOAT_UNARY(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::scalar_unary, Arithmetic::floating, 0, element},
                    CROSSTALK_FLOAT_SCALAR_UNARY(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::binary, Arithmetic::integer, 0, element},
                        CROSSTALK_INTEGER_SSE2(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::binary, Arithmetic::integer, ProcessorFeatures::ssse3, element},
                            CROSSTALK_INTEGER_SSSE3(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::unary, Arithmetic::integer, ProcessorFeatures::ssse3, element},
                                CROSSTALK_INTEGER_SSSE3_UNARY(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::binary, Arithmetic::integer, ProcessorFeatures::sse4, element},
                                    CROSSTALK_INTEGER_SSE4(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::shift, Arithmetic::integer, 0, element},
                                        CROSSTALK_SHIFTS(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) Facts{Kind::fused, Arithmetic::floating, ProcessorFeatures::fma, element},
                                            CROSSTALK_FMA(CROSSTALK_F)
#undef CROSSTALK_F
#define CROSSTALK_F(name, NAME, element) \
  Facts{Kind::fused_scalar, Arithmetic::floating, ProcessorFeatures::fma, element},
                                                CROSSTALK_FMA_SCALAR(CROSSTALK_F)
#undef CROSSTALK_F
};
constexpr std::size_t fact_count = sizeof facts / sizeof facts[0];
static_assert(fact_count == static_cast<std::size_t>(VectorOperation::convert_to_float));

/// `first` op= `second`; fused operations have three operands. Each is one instruction, whose numbering of registers is
/// the assembler's.
// NOLINTBEGIN(hicpp-no-assembler)
__m128i execute(VectorOperation operation, __m128i first, __m128i second, __m128i third) {
  switch (operation) {
#define CROSSTALK_TWO(name, NAME, element)                     \
  case VectorOperation::name:                                  \
    asm volatile(#name " %1, %0" : "+x"(first) : "x"(second)); \
    break;
#define CROSSTALK_THREE(name, NAME, element)                                   \
  case VectorOperation::name:                                                  \
    asm volatile(#name " %2, %1, %0" : "+x"(first) : "x"(second), "x"(third)); \
    break;
    CROSSTALK_FLOAT_PACKED(CROSSTALK_TWO)
    CROSSTALK_FLOAT_SCALAR(CROSSTALK_TWO)
    CROSSTALK_FLOAT_SSE3(CROSSTALK_TWO)
    CROSSTALK_FLOAT_UNARY(CROSSTALK_TWO)
    CROSSTALK_FLOAT_SCALAR_UNARY(CROSSTALK_TWO)
    CROSSTALK_INTEGER_SSE2(CROSSTALK_TWO)
    CROSSTALK_INTEGER_SSSE3(CROSSTALK_TWO)
    CROSSTALK_INTEGER_SSSE3_UNARY(CROSSTALK_TWO)
    CROSSTALK_INTEGER_SSE4(CROSSTALK_TWO)
    CROSSTALK_SHIFTS(CROSSTALK_TWO)
    CROSSTALK_FMA(CROSSTALK_THREE)
    CROSSTALK_FMA_SCALAR(CROSSTALK_THREE)
#undef CROSSTALK_TWO
#undef CROSSTALK_THREE
    default:
      break;
  }
  return first;
}
// NOLINTEND(hicpp-no-assembler)

__m128i lane_of(const Vector& vector, unsigned at) {
  return _mm_load_si128(reinterpret_cast<const __m128i*>(vector.byte + at));  // NOLINT: aligned bytes
}

void execute_lanes(VectorStep& step, const Facts& its) {
  constexpr unsigned lane = 16;
  const bool one = its.kind == Kind::scalar || its.kind == Kind::scalar_unary || its.kind == Kind::fused_scalar;
  const bool fused = its.kind == Kind::fused || its.kind == Kind::fused_scalar;
  const Vector& first = fused ? step.before : step.left;
  const Vector& second = fused ? step.left : step.right;
  for (unsigned at = 0; at < (one ? lane : step.size); at += lane) {
    const __m128i made = execute(step.operation, lane_of(first, at), lane_of(second, its.kind == Kind::shift ? 0 : at),
                                 lane_of(step.right, at));
    _mm_store_si128(reinterpret_cast<__m128i*>(step.result.byte + at), made);  // NOLINT: aligned bytes
  }
}

/// True if the same register on both sides always gives the same result.
bool is_constant(VectorOperation operation) {
  switch (operation) {
    case VectorOperation::pxor:
    case VectorOperation::pandn:
    case VectorOperation::psubb:
    case VectorOperation::psubw:
    case VectorOperation::psubd:
    case VectorOperation::psubq:
    case VectorOperation::pcmpeqb:
    case VectorOperation::pcmpeqw:
    case VectorOperation::pcmpeqd:
    case VectorOperation::pcmpeqq:
    case VectorOperation::pcmpgtb:
    case VectorOperation::pcmpgtw:
    case VectorOperation::pcmpgtd:
    case VectorOperation::pcmpgtq:
      return true;
    default:
      return false;
  }
}

/// Returns the bytes of a scalar operation's source element.
unsigned source_element(VectorOperation operation, unsigned element) {
  if (operation == VectorOperation::cvtss2sd) {
    return 4;
  }
  return operation == VectorOperation::cvtsd2ss ? 8 : element;
}

std::uint64_t known_of(const VectorStep& step, const Facts& its) {
  const std::uint64_t both = step.left.known & step.right.known;
  const std::uint64_t element = low_bits(its.element);
  const std::uint64_t source = low_bits(source_element(step.operation, its.element));
  switch (its.kind) {
    case Kind::binary:
      return step.same_source && is_constant(step.operation) ? ~std::uint64_t{0} : whole_elements(both, its.element);
    case Kind::unary:
      return whole_elements(step.right.known, its.element);
    case Kind::shift:
      return element_known(step.right, 0, 8) ? whole_elements(step.left.known, its.element) : 0;
    case Kind::fused:
      return whole_elements(both & step.before.known, its.element);
    case Kind::scalar:
      return (step.left.known & ~element) | ((both & element) == element ? element : 0);
    case Kind::scalar_unary:
      return (step.left.known & ~element) | ((step.right.known & source) == source ? element : 0);
    case Kind::fused_scalar:
      return (step.before.known & ~element) | ((both & step.before.known & element) == element ? element : 0);
  }
  return 0;
}

}  // namespace

std::uint64_t whole_elements(std::uint64_t known, unsigned bytes) {
  constexpr std::uint64_t every[] = {~std::uint64_t{0}, 0x5555555555555555, 0x1111111111111111, 0x0101010101010101,
                                     0x0001000100010001};
  if (known == ~std::uint64_t{0}) {
    return known;
  }
  unsigned log = 0;
  for (unsigned by = 1; by < bytes; by *= 2, ++log) {
    known &= known >> by;
  }
  known &= every[log];
  for (unsigned by = 1; by < bytes; by *= 2) {
    known |= known << by;
  }
  return known;
}

bool compute_by_processor(VectorStep& step, std::uint32_t has) {
  const auto which = static_cast<std::size_t>(step.operation);
  if (which >= fact_count || (facts[which].needs & ~has) != 0) {
    return false;
  }
  const Facts& its = facts[which];
  if (its.kind == Kind::fused_scalar || its.kind == Kind::scalar || its.kind == Kind::scalar_unary) {
    step.result_bytes = 16;
  }
  step.result.known = known_of(step, its);
  if (its.arithmetic == Arithmetic::integer) {
    execute_lanes(step, its);
    return true;
  }
  if (!step.mode_known) {
    return false;
  }
  const ThreadFloatMode mode(step.mode);
  execute_lanes(step, its);
  return !mode.would_trap();
}

}  // namespace crosstalk::in_target
