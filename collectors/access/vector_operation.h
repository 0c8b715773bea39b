// SPDX-License-Identifier: Apache-2.0
// The vector instructions that lookaheads follow: the computation of each, independent of its encoding.
#pragma once

#include <cstdint>

#include "collectors/access/decoded_instruction.h"

namespace crosstalk::in_target {

// Operations that the processor executes for us on 16 bytes at a time, as result = left op right: (name in assembly,
// in capitals, bytes of an element). Those of 16 bytes have results that depend on more of the operands than one
// element.
// Tables, as many to a line as fit.
// clang-format off
#define CROSSTALK_FLOAT_PACKED(X)                                                                                   \
  X(addps, ADDPS, 4)                                                                                                \
  X(addpd, ADDPD, 8) X(subps, SUBPS, 4) X(subpd, SUBPD, 8) X(mulps, MULPS, 4) X(mulpd, MULPD, 8) X(divps, DIVPS, 4) \
      X(divpd, DIVPD, 8) X(minps, MINPS, 4) X(minpd, MINPD, 8) X(maxps, MAXPS, 4) X(maxpd, MAXPD, 8)
#define CROSSTALK_FLOAT_SCALAR(X)                                                                                   \
  X(addss, ADDSS, 4)                                                                                                \
  X(addsd, ADDSD, 8) X(subss, SUBSS, 4) X(subsd, SUBSD, 8) X(mulss, MULSS, 4) X(mulsd, MULSD, 8) X(divss, DIVSS, 4) \
      X(divsd, DIVSD, 8) X(minss, MINSS, 4) X(minsd, MINSD, 8) X(maxss, MAXSS, 4) X(maxsd, MAXSD, 8)
#define CROSSTALK_FLOAT_SSE3(X) \
  X(haddps, HADDPS, 16)         \
  X(haddpd, HADDPD, 16) X(hsubps, HSUBPS, 16) X(hsubpd, HSUBPD, 16) X(addsubps, ADDSUBPS, 4) X(addsubpd, ADDSUBPD, 8)
// Operations on the right operand alone; the scalar ones take the bits above their element from the left.
#define CROSSTALK_FLOAT_UNARY(X)                                                                                   \
  X(sqrtps, SQRTPS, 4)                                                                                             \
  X(sqrtpd, SQRTPD, 8) X(rcpps, RCPPS, 4) X(rsqrtps, RSQRTPS, 4) X(cvtdq2ps, CVTDQ2PS, 4) X(cvtps2dq, CVTPS2DQ, 4) \
      X(cvttps2dq, CVTTPS2DQ, 4)
#define CROSSTALK_FLOAT_SCALAR_UNARY(X) \
  X(sqrtss, SQRTSS, 4)                  \
  X(sqrtsd, SQRTSD, 8) X(rcpss, RCPSS, 4) X(rsqrtss, RSQRTSS, 4) X(cvtss2sd, CVTSS2SD, 8) X(cvtsd2ss, CVTSD2SS, 4)
#define CROSSTALK_INTEGER_SSE2(X)                                                                                      \
  X(pand, PAND, 1)                                                                                                     \
  X(pandn, PANDN, 1) X(por, POR, 1) X(pxor, PXOR, 1) X(paddb, PADDB, 1) X(paddw, PADDW, 2) X(paddd, PADDD, 4)          \
      X(paddq, PADDQ, 8) X(psubb, PSUBB, 1) X(psubw, PSUBW, 2) X(psubd, PSUBD, 4) X(psubq, PSUBQ, 8)                   \
          X(paddsb, PADDSB, 1) X(paddsw, PADDSW, 2) X(paddusb, PADDUSB, 1) X(paddusw, PADDUSW, 2) X(psubsb, PSUBSB, 1) \
              X(psubsw, PSUBSW, 2) X(psubusb, PSUBUSB, 1) X(psubusw, PSUBUSW, 2) X(pmullw, PMULLW, 2)                  \
                  X(pmulhw, PMULHW, 2) X(pmulhuw, PMULHUW, 2) X(pmuludq, PMULUDQ, 8) X(pmaddwd, PMADDWD, 4)            \
                      X(psadbw, PSADBW, 8) X(pavgb, PAVGB, 1) X(pavgw, PAVGW, 2) X(pminub, PMINUB, 1)                  \
                          X(pmaxub, PMAXUB, 1) X(pminsw, PMINSW, 2) X(pmaxsw, PMAXSW, 2) X(pcmpeqb, PCMPEQB, 1)        \
                              X(pcmpeqw, PCMPEQW, 2) X(pcmpeqd, PCMPEQD, 4) X(pcmpgtb, PCMPGTB, 1)                     \
                                  X(pcmpgtw, PCMPGTW, 2) X(pcmpgtd, PCMPGTD, 4) X(packsswb, PACKSSWB, 16)              \
                                      X(packssdw, PACKSSDW, 16) X(packuswb, PACKUSWB, 16)
#define CROSSTALK_INTEGER_SSSE3(X)                                                             \
  X(phaddw, PHADDW, 16)                                                                        \
  X(phaddd, PHADDD, 16) X(phsubw, PHSUBW, 16) X(phsubd, PHSUBD, 16) X(pmaddubsw, PMADDUBSW, 2) \
      X(pmulhrsw, PMULHRSW, 2) X(psignb, PSIGNB, 1) X(psignw, PSIGNW, 2) X(psignd, PSIGND, 4)
#define CROSSTALK_INTEGER_SSSE3_UNARY(X) X(pabsb, PABSB, 1) X(pabsw, PABSW, 2) X(pabsd, PABSD, 4)
#define CROSSTALK_INTEGER_SSE4(X)                                                                                \
  X(pmulld, PMULLD, 4)                                                                                           \
  X(pmuldq, PMULDQ, 8) X(pminsb, PMINSB, 1) X(pmaxsb, PMAXSB, 1) X(pminsd, PMINSD, 4) X(pmaxsd, PMAXSD, 4)       \
      X(pminuw, PMINUW, 2) X(pmaxuw, PMAXUW, 2) X(pminud, PMINUD, 4) X(pmaxud, PMAXUD, 4) X(pcmpeqq, PCMPEQQ, 8) \
          X(pcmpgtq, PCMPGTQ, 8) X(packusdw, PACKUSDW, 16)
// Shifts of all elements by the low 8 bytes of the right operand, or by an immediate.
#define CROSSTALK_SHIFTS(X)                                                                                         \
  X(psllw, PSLLW, 2)                                                                                                \
  X(pslld, PSLLD, 4) X(psllq, PSLLQ, 8) X(psrlw, PSRLW, 2) X(psrld, PSRLD, 4) X(psrlq, PSRLQ, 8) X(psraw, PSRAW, 2) \
      X(psrad, PSRAD, 4)
// Fused multiply and add, in the three orders of operands, which differ if two of them are NaNs.
#define CROSSTALK_FMA_OF(X, kind, KIND)                                                                                \
  X(vf##kind##132ps, VF##KIND##132PS, 4)                                                                               \
  X(vf##kind##213ps, VF##KIND##213PS, 4) X(vf##kind##231ps, VF##KIND##231PS, 4) X(vf##kind##132pd, VF##KIND##132PD, 8) \
      X(vf##kind##213pd, VF##KIND##213PD, 8) X(vf##kind##231pd, VF##KIND##231PD, 8)
#define CROSSTALK_FMA_SCALAR_OF(X, kind, KIND)                                                                         \
  X(vf##kind##132ss, VF##KIND##132SS, 4)                                                                               \
  X(vf##kind##213ss, VF##KIND##213SS, 4) X(vf##kind##231ss, VF##KIND##231SS, 4) X(vf##kind##132sd, VF##KIND##132SD, 8) \
      X(vf##kind##213sd, VF##KIND##213SD, 8) X(vf##kind##231sd, VF##KIND##231SD, 8)
#define CROSSTALK_FMA(X)          \
  CROSSTALK_FMA_OF(X, madd, MADD) \
  CROSSTALK_FMA_OF(X, msub, MSUB) CROSSTALK_FMA_OF(X, nmadd, NMADD) CROSSTALK_FMA_OF(X, nmsub, NMSUB)
#define CROSSTALK_FMA_SCALAR(X)                                                   \
  CROSSTALK_FMA_SCALAR_OF(X, madd, MADD)                                          \
  CROSSTALK_FMA_SCALAR_OF(X, msub, MSUB) CROSSTALK_FMA_SCALAR_OF(X, nmadd, NMADD) \
      CROSSTALK_FMA_SCALAR_OF(X, nmsub, NMSUB)

#define CROSSTALK_PROCESSOR_OPERATIONS(X)                                                                             \
  CROSSTALK_FLOAT_PACKED(X)                                                                                           \
  CROSSTALK_FLOAT_SCALAR(X) CROSSTALK_FLOAT_SSE3(X) CROSSTALK_FLOAT_UNARY(X) CROSSTALK_FLOAT_SCALAR_UNARY(X)          \
      CROSSTALK_INTEGER_SSE2(X) CROSSTALK_INTEGER_SSSE3(X) CROSSTALK_INTEGER_SSSE3_UNARY(X) CROSSTALK_INTEGER_SSE4(X) \
          CROSSTALK_SHIFTS(X) CROSSTALK_FMA(X) CROSSTALK_FMA_SCALAR(X)
// clang-format on

enum class VectorOperation : std::uint8_t {
#define CROSSTALK_NAME(name, NAME, element) name,
  CROSSTALK_PROCESSOR_OPERATIONS(CROSSTALK_NAME)
#undef CROSSTALK_NAME
  // By elements
  convert_to_float,   // of integers: cvtsi2sd, cvtdq2pd
  convert_to_double,  // cvtps2pd
  convert_to_single,  // cvtpd2ps
  convert_to_int,     // cvtpd2dq, cvtsd2si
  truncate_to_int,    // cvttpd2dq, cvttsd2si
  round,              // roundsd
  extend_zero,        // pmovzx
  extend_sign,        // pmovsx
  compare_float,      // cmppd, to vectors and masks
  compare_signed,     // vpcmp to masks; the immediate is the predicate
  compare_unsigned,
  test_and,  // vptestm
  test_nand,
  shift_left_each,
  shift_right_each,
  shift_right_signed_each,
  ternary_logic,
  // Moves of bytes
  move,         // of the whole operand
  move_low,     // movss, movsd: the rest is the left operand's, or zero if the source is in memory
  move_zero,    // movd, movq: the rest is zero
  move_high,    // movhpd: to and from the upper half
  move_lower,   // movlpd
  high_to_low,  // movhlps
  low_to_high,  // movlhps
  duplicate_even,
  duplicate_odd,
  duplicate_double,
  broadcast,
  shuffle_words,  // pshufd and the like: from each 16 bytes, by the immediate
  shuffle_low_words,
  shuffle_high_words,
  shuffle_two,  // shufps, shufpd
  shuffle_bytes,
  align_right,
  shift_bytes_left,
  shift_bytes_right,
  unpack_low,
  unpack_high,
  permute_quarters,  // vpermq by an immediate
  permute_elements,  // vpermd
  permute_in_lanes,  // vpermilps by a register
  permute_lanes,     // vperm2f128
  insert_lane,       // vinsertf128
  extract_lane,      // vextractf128
  insert_element,    // pinsrb
  extract_element,   // pextrb
  insert_single,     // insertps
  blend_immediate,   // blendps
  blend_by_sign,     // pblendvb
  blend_by_mask,     // vpblendmb
  align_elements,    // valignd
  // To registers and flags
  compare_to_flags,  // ucomisd
  test_to_flags,     // ptest
  test_signs_to_flags,
  move_signs,  // pmovmskb
  // Masks
  mask_move,
  mask_and,
  mask_and_not,
  mask_or,
  mask_xor,
  mask_xnor,
  mask_not,
  mask_add,
  mask_shift_left,
  mask_shift_right,
  mask_unpack,
  mask_or_to_flags,
  mask_test_to_flags,
  mask_to_vector,
  vector_to_mask,
  // Operations of the unit
  zero_upper,
  zero_all,
  load_mode,
  count,
  none = 255,
};
static_assert(static_cast<unsigned>(VectorOperation::count) < 255);

/// Operands are in DecodedInstruction's destination, source (left) and second (right); the rest is packed into its
/// immediate.
struct VectorForm {
  std::uint8_t immediate = 0;
  std::uint8_t part = 0;      ///< conversions: bytes of the source's element; lanes and broadcasts: bytes of one;
                              ///< blend_by_sign: number of the third register
  std::uint8_t mask = 0;      ///< mask register, 0: none
  bool zeroing = false;       ///< elements that the mask leaves out become zero
  bool broadcasts = false;    ///< the memory operand is one element, for all
  bool clears_upper = false;  ///< of the destination: VEX and EVEX encodings
  bool scalar = false;        ///< of the lowest element alone

  [[nodiscard]] constexpr std::int32_t pack() const {
    return static_cast<std::int32_t>(immediate | static_cast<unsigned>(part) << 8U |
                                     static_cast<unsigned>(mask) << 16U | (zeroing ? 1U : 0U) << 20U |
                                     (broadcasts ? 1U : 0U) << 21U | (clears_upper ? 1U : 0U) << 22U |
                                     (scalar ? 1U : 0U) << 23U);
  }
  [[nodiscard]] static constexpr VectorForm unpack(std::int32_t packed) {
    const auto bits = static_cast<std::uint32_t>(packed);
    return {static_cast<std::uint8_t>(bits),
            static_cast<std::uint8_t>(bits >> 8U),
            static_cast<std::uint8_t>(bits >> 16U & 7U),
            (bits >> 20U & 1U) != 0,
            (bits >> 21U & 1U) != 0,
            (bits >> 22U & 1U) != 0,
            (bits >> 23U & 1U) != 0};
  }
};

/// Returns the vector operation of an instruction with Operation::vector. Its `size` is the vectors' bytes,
/// `source_size` an element's.
[[nodiscard]] inline VectorOperation vector_operation(const DecodedInstruction& instruction) {
  return static_cast<VectorOperation>(instruction.condition);
}

}  // namespace crosstalk::in_target
