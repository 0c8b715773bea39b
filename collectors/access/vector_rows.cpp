// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/vector_rows.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace crosstalk::in_target {

namespace {

using Row = VectorRow;
using O = VectorOperation;
using S = VectorShape;

#define CROSSTALK_BOTH(NAME, ...) \
  Row{ZYDIS_MNEMONIC_##NAME, __VA_ARGS__}, Row { ZYDIS_MNEMONIC_V##NAME, __VA_ARGS__ }
#define CROSSTALK_BINARY(name, NAME, element) CROSSTALK_BOTH(NAME, O::name, element, S::binary),
#define CROSSTALK_UNARY(name, NAME, element) CROSSTALK_BOTH(NAME, O::name, element, S::unary),
#define CROSSTALK_SHIFT(name, NAME, element) CROSSTALK_BOTH(NAME, O::name, element, S::shift),
#define CROSSTALK_SCALAR(name, NAME, element) CROSSTALK_BOTH(NAME, O::name, element, S::scalar),
#define CROSSTALK_SCALAR_UNARY(name, NAME, element) CROSSTALK_BOTH(NAME, O::name, element, S::scalar_unary),
#define CROSSTALK_ONE(name, NAME, element) Row{ZYDIS_MNEMONIC_##NAME, O::name, element, S::binary},
#define CROSSTALK_ONE_SCALAR(name, NAME, element) Row{ZYDIS_MNEMONIC_##NAME, O::name, element, S::scalar},
#define CROSSTALK_MASK(NAME, operation)                                                                               \
  Row{ZYDIS_MNEMONIC_##NAME##B, O::operation, 1, S::unary}, Row{ZYDIS_MNEMONIC_##NAME##W, O::operation, 2, S::unary}, \
      Row{ZYDIS_MNEMONIC_##NAME##D, O::operation, 4, S::unary}, Row {                                                 \
    ZYDIS_MNEMONIC_##NAME##Q, O::operation, 8, S::unary                                                               \
  }
#define CROSSTALK_MASK_BINARY(NAME, operation)                         \
  Row{ZYDIS_MNEMONIC_##NAME##B, O::operation, 1, S::binary},           \
      Row{ZYDIS_MNEMONIC_##NAME##W, O::operation, 2, S::binary},       \
      Row{ZYDIS_MNEMONIC_##NAME##D, O::operation, 4, S::binary}, Row { \
    ZYDIS_MNEMONIC_##NAME##Q, O::operation, 8, S::binary               \
  }

constexpr Row in_any_order[] = {
    CROSSTALK_FLOAT_PACKED(CROSSTALK_BINARY)              //
    CROSSTALK_FLOAT_SSE3(CROSSTALK_BINARY)                //
    CROSSTALK_FLOAT_SCALAR(CROSSTALK_SCALAR)              //
    CROSSTALK_FLOAT_UNARY(CROSSTALK_UNARY)                //
    CROSSTALK_FLOAT_SCALAR_UNARY(CROSSTALK_SCALAR_UNARY)  //
    CROSSTALK_INTEGER_SSE2(CROSSTALK_BINARY)              //
    CROSSTALK_INTEGER_SSSE3(CROSSTALK_BINARY)             //
    CROSSTALK_INTEGER_SSSE3_UNARY(CROSSTALK_UNARY)        //
    CROSSTALK_INTEGER_SSE4(CROSSTALK_BINARY)              //
    CROSSTALK_SHIFTS(CROSSTALK_SHIFT)                     //
    CROSSTALK_FMA(CROSSTALK_ONE)                          //
    CROSSTALK_FMA_SCALAR(CROSSTALK_ONE_SCALAR)            //
    CROSSTALK_BOTH(ANDPS, O::pand, 4, S::binary),
    CROSSTALK_BOTH(ANDPD, O::pand, 8, S::binary),
    CROSSTALK_BOTH(ANDNPS, O::pandn, 4, S::binary),
    CROSSTALK_BOTH(ANDNPD, O::pandn, 8, S::binary),
    CROSSTALK_BOTH(ORPS, O::por, 4, S::binary),
    CROSSTALK_BOTH(ORPD, O::por, 8, S::binary),
    CROSSTALK_BOTH(XORPS, O::pxor, 4, S::binary),
    CROSSTALK_BOTH(XORPD, O::pxor, 8, S::binary),
    {ZYDIS_MNEMONIC_VPANDD, O::pand, 4, S::binary},
    {ZYDIS_MNEMONIC_VPANDQ, O::pand, 8, S::binary},
    {ZYDIS_MNEMONIC_VPANDND, O::pandn, 4, S::binary},
    {ZYDIS_MNEMONIC_VPANDNQ, O::pandn, 8, S::binary},
    {ZYDIS_MNEMONIC_VPORD, O::por, 4, S::binary},
    {ZYDIS_MNEMONIC_VPORQ, O::por, 8, S::binary},
    {ZYDIS_MNEMONIC_VPXORD, O::pxor, 4, S::binary},
    {ZYDIS_MNEMONIC_VPXORQ, O::pxor, 8, S::binary},
    CROSSTALK_BOTH(CVTSI2SS, O::convert_to_float, 4, S::scalar_unary),
    CROSSTALK_BOTH(CVTSI2SD, O::convert_to_float, 8, S::scalar_unary),
    CROSSTALK_BOTH(CVTDQ2PD, O::convert_to_float, 8, S::unary, 4),
    CROSSTALK_BOTH(CVTPS2PD, O::convert_to_double, 8, S::unary, 4),
    CROSSTALK_BOTH(CVTPD2PS, O::convert_to_single, 4, S::unary, 8),
    CROSSTALK_BOTH(CVTPD2DQ, O::convert_to_int, 4, S::unary, 8),
    CROSSTALK_BOTH(CVTTPD2DQ, O::truncate_to_int, 4, S::unary, 8),
    CROSSTALK_BOTH(CVTSS2SI, O::convert_to_int, 0, S::unary, 4),
    CROSSTALK_BOTH(CVTSD2SI, O::convert_to_int, 0, S::unary, 8),
    CROSSTALK_BOTH(CVTTSS2SI, O::truncate_to_int, 0, S::unary, 4),
    CROSSTALK_BOTH(CVTTSD2SI, O::truncate_to_int, 0, S::unary, 8),
    CROSSTALK_BOTH(ROUNDPS, O::round, 4, S::unary),
    CROSSTALK_BOTH(ROUNDPD, O::round, 8, S::unary),
    CROSSTALK_BOTH(ROUNDSS, O::round, 4, S::scalar_unary),
    CROSSTALK_BOTH(ROUNDSD, O::round, 8, S::scalar_unary),
    CROSSTALK_BOTH(PMOVZXBW, O::extend_zero, 2, S::unary, 1),
    CROSSTALK_BOTH(PMOVZXBD, O::extend_zero, 4, S::unary, 1),
    CROSSTALK_BOTH(PMOVZXBQ, O::extend_zero, 8, S::unary, 1),
    CROSSTALK_BOTH(PMOVZXWD, O::extend_zero, 4, S::unary, 2),
    CROSSTALK_BOTH(PMOVZXWQ, O::extend_zero, 8, S::unary, 2),
    CROSSTALK_BOTH(PMOVZXDQ, O::extend_zero, 8, S::unary, 4),
    CROSSTALK_BOTH(PMOVSXBW, O::extend_sign, 2, S::unary, 1),
    CROSSTALK_BOTH(PMOVSXBD, O::extend_sign, 4, S::unary, 1),
    CROSSTALK_BOTH(PMOVSXBQ, O::extend_sign, 8, S::unary, 1),
    CROSSTALK_BOTH(PMOVSXWD, O::extend_sign, 4, S::unary, 2),
    CROSSTALK_BOTH(PMOVSXWQ, O::extend_sign, 8, S::unary, 2),
    CROSSTALK_BOTH(PMOVSXDQ, O::extend_sign, 8, S::unary, 4),
    CROSSTALK_BOTH(CMPPS, O::compare_float, 4, S::binary),
    CROSSTALK_BOTH(CMPPD, O::compare_float, 8, S::binary),
    CROSSTALK_BOTH(CMPSS, O::compare_float, 4, S::scalar),
    CROSSTALK_BOTH(CMPSD, O::compare_float, 8, S::scalar),
    CROSSTALK_MASK_BINARY(VPCMP, compare_signed),
    CROSSTALK_MASK_BINARY(VPCMPU, compare_unsigned),
    CROSSTALK_MASK_BINARY(VPTESTM, test_and),
    CROSSTALK_MASK_BINARY(VPTESTNM, test_nand),
    {ZYDIS_MNEMONIC_VPSLLVD, O::shift_left_each, 4, S::binary},
    {ZYDIS_MNEMONIC_VPSLLVQ, O::shift_left_each, 8, S::binary},
    {ZYDIS_MNEMONIC_VPSRLVD, O::shift_right_each, 4, S::binary},
    {ZYDIS_MNEMONIC_VPSRLVQ, O::shift_right_each, 8, S::binary},
    {ZYDIS_MNEMONIC_VPSRAVD, O::shift_right_signed_each, 4, S::binary},
    {ZYDIS_MNEMONIC_VPTERNLOGD, O::ternary_logic, 4, S::binary},
    {ZYDIS_MNEMONIC_VPTERNLOGQ, O::ternary_logic, 8, S::binary},
    CROSSTALK_BOTH(MOVAPS, O::move, 4, S::unary),
    CROSSTALK_BOTH(MOVUPS, O::move, 4, S::unary),
    CROSSTALK_BOTH(MOVAPD, O::move, 8, S::unary),
    CROSSTALK_BOTH(MOVUPD, O::move, 8, S::unary),
    CROSSTALK_BOTH(MOVDQA, O::move, 1, S::unary),
    CROSSTALK_BOTH(MOVDQU, O::move, 1, S::unary),
    CROSSTALK_BOTH(LDDQU, O::move, 1, S::unary),
    CROSSTALK_BOTH(MOVNTPS, O::move, 4, S::unary),
    CROSSTALK_BOTH(MOVNTPD, O::move, 8, S::unary),
    CROSSTALK_BOTH(MOVNTDQ, O::move, 1, S::unary),
    CROSSTALK_BOTH(MOVNTDQA, O::move, 1, S::unary),
    {ZYDIS_MNEMONIC_VMOVDQU8, O::move, 1, S::unary},
    {ZYDIS_MNEMONIC_VMOVDQU16, O::move, 2, S::unary},
    {ZYDIS_MNEMONIC_VMOVDQU32, O::move, 4, S::unary},
    {ZYDIS_MNEMONIC_VMOVDQU64, O::move, 8, S::unary},
    {ZYDIS_MNEMONIC_VMOVDQA32, O::move, 4, S::unary},
    {ZYDIS_MNEMONIC_VMOVDQA64, O::move, 8, S::unary},
    CROSSTALK_BOTH(MOVSS, O::move_low, 4, S::moves_low),
    CROSSTALK_BOTH(MOVSD, O::move_low, 8, S::moves_low),
    CROSSTALK_BOTH(MOVD, O::move_zero, 4, S::unary),
    CROSSTALK_BOTH(MOVQ, O::move_zero, 8, S::unary),
    CROSSTALK_BOTH(MOVHPS, O::move_high, 8, S::binary),
    CROSSTALK_BOTH(MOVHPD, O::move_high, 8, S::binary),
    CROSSTALK_BOTH(MOVLPS, O::move_lower, 8, S::binary),
    CROSSTALK_BOTH(MOVLPD, O::move_lower, 8, S::binary),
    CROSSTALK_BOTH(MOVHLPS, O::high_to_low, 8, S::binary),
    CROSSTALK_BOTH(MOVLHPS, O::low_to_high, 8, S::binary),
    CROSSTALK_BOTH(MOVSLDUP, O::duplicate_even, 4, S::unary),
    CROSSTALK_BOTH(MOVSHDUP, O::duplicate_odd, 4, S::unary),
    CROSSTALK_BOTH(MOVDDUP, O::duplicate_double, 8, S::unary),
    {ZYDIS_MNEMONIC_VBROADCASTSS, O::broadcast, 4, S::unary, 4},
    {ZYDIS_MNEMONIC_VBROADCASTSD, O::broadcast, 8, S::unary, 8},
    {ZYDIS_MNEMONIC_VBROADCASTF128, O::broadcast, 8, S::unary, 16},
    {ZYDIS_MNEMONIC_VBROADCASTI128, O::broadcast, 8, S::unary, 16},
    {ZYDIS_MNEMONIC_VBROADCASTF32X4, O::broadcast, 4, S::unary, 16},
    {ZYDIS_MNEMONIC_VBROADCASTI32X4, O::broadcast, 4, S::unary, 16},
    {ZYDIS_MNEMONIC_VBROADCASTF64X2, O::broadcast, 8, S::unary, 16},
    {ZYDIS_MNEMONIC_VBROADCASTI64X2, O::broadcast, 8, S::unary, 16},
    {ZYDIS_MNEMONIC_VBROADCASTF64X4, O::broadcast, 8, S::unary, 32},
    {ZYDIS_MNEMONIC_VBROADCASTI64X4, O::broadcast, 8, S::unary, 32},
    {ZYDIS_MNEMONIC_VPBROADCASTB, O::broadcast, 1, S::unary, 1},
    {ZYDIS_MNEMONIC_VPBROADCASTW, O::broadcast, 2, S::unary, 2},
    {ZYDIS_MNEMONIC_VPBROADCASTD, O::broadcast, 4, S::unary, 4},
    {ZYDIS_MNEMONIC_VPBROADCASTQ, O::broadcast, 8, S::unary, 8},
    CROSSTALK_BOTH(PSHUFD, O::shuffle_words, 4, S::unary),
    CROSSTALK_BOTH(PSHUFLW, O::shuffle_low_words, 2, S::unary),
    CROSSTALK_BOTH(PSHUFHW, O::shuffle_high_words, 2, S::unary),
    CROSSTALK_BOTH(SHUFPS, O::shuffle_two, 4, S::binary),
    CROSSTALK_BOTH(SHUFPD, O::shuffle_two, 8, S::binary),
    CROSSTALK_BOTH(PSHUFB, O::shuffle_bytes, 1, S::binary),
    CROSSTALK_BOTH(PALIGNR, O::align_right, 1, S::binary),
    CROSSTALK_BOTH(PSLLDQ, O::shift_bytes_left, 1, S::shift),
    CROSSTALK_BOTH(PSRLDQ, O::shift_bytes_right, 1, S::shift),
    CROSSTALK_BOTH(PUNPCKLBW, O::unpack_low, 1, S::binary),
    CROSSTALK_BOTH(PUNPCKLWD, O::unpack_low, 2, S::binary),
    CROSSTALK_BOTH(PUNPCKLDQ, O::unpack_low, 4, S::binary),
    CROSSTALK_BOTH(PUNPCKLQDQ, O::unpack_low, 8, S::binary),
    CROSSTALK_BOTH(UNPCKLPS, O::unpack_low, 4, S::binary),
    CROSSTALK_BOTH(UNPCKLPD, O::unpack_low, 8, S::binary),
    CROSSTALK_BOTH(PUNPCKHBW, O::unpack_high, 1, S::binary),
    CROSSTALK_BOTH(PUNPCKHWD, O::unpack_high, 2, S::binary),
    CROSSTALK_BOTH(PUNPCKHDQ, O::unpack_high, 4, S::binary),
    CROSSTALK_BOTH(PUNPCKHQDQ, O::unpack_high, 8, S::binary),
    CROSSTALK_BOTH(UNPCKHPS, O::unpack_high, 4, S::binary),
    CROSSTALK_BOTH(UNPCKHPD, O::unpack_high, 8, S::binary),
    {ZYDIS_MNEMONIC_VPERMQ, O::permute_elements, 8, S::binary},
    {ZYDIS_MNEMONIC_VPERMPD, O::permute_elements, 8, S::binary},
    {ZYDIS_MNEMONIC_VPERMD, O::permute_elements, 4, S::binary},
    {ZYDIS_MNEMONIC_VPERMPS, O::permute_elements, 4, S::binary},
    {ZYDIS_MNEMONIC_VPERMW, O::permute_elements, 2, S::binary},
    {ZYDIS_MNEMONIC_VPERMB, O::permute_elements, 1, S::binary},
    {ZYDIS_MNEMONIC_VPERMILPS, O::permute_in_lanes, 4, S::binary},
    {ZYDIS_MNEMONIC_VPERMILPD, O::permute_in_lanes, 8, S::binary},
    {ZYDIS_MNEMONIC_VPERM2F128, O::permute_lanes, 8, S::binary},
    {ZYDIS_MNEMONIC_VPERM2I128, O::permute_lanes, 8, S::binary},
    {ZYDIS_MNEMONIC_VINSERTF128, O::insert_lane, 8, S::binary, 16},
    {ZYDIS_MNEMONIC_VINSERTI128, O::insert_lane, 8, S::binary, 16},
    {ZYDIS_MNEMONIC_VINSERTF32X4, O::insert_lane, 4, S::binary, 16},
    {ZYDIS_MNEMONIC_VINSERTI32X4, O::insert_lane, 4, S::binary, 16},
    {ZYDIS_MNEMONIC_VINSERTF64X4, O::insert_lane, 8, S::binary, 32},
    {ZYDIS_MNEMONIC_VINSERTI64X4, O::insert_lane, 8, S::binary, 32},
    {ZYDIS_MNEMONIC_VEXTRACTF128, O::extract_lane, 8, S::unary, 16},
    {ZYDIS_MNEMONIC_VEXTRACTI128, O::extract_lane, 8, S::unary, 16},
    {ZYDIS_MNEMONIC_VEXTRACTF32X4, O::extract_lane, 4, S::unary, 16},
    {ZYDIS_MNEMONIC_VEXTRACTI32X4, O::extract_lane, 4, S::unary, 16},
    {ZYDIS_MNEMONIC_VEXTRACTF64X4, O::extract_lane, 8, S::unary, 32},
    {ZYDIS_MNEMONIC_VEXTRACTI64X4, O::extract_lane, 8, S::unary, 32},
    CROSSTALK_BOTH(PINSRB, O::insert_element, 1, S::binary),
    CROSSTALK_BOTH(PINSRW, O::insert_element, 2, S::binary),
    CROSSTALK_BOTH(PINSRD, O::insert_element, 4, S::binary),
    CROSSTALK_BOTH(PINSRQ, O::insert_element, 8, S::binary),
    CROSSTALK_BOTH(PEXTRB, O::extract_element, 1, S::unary),
    CROSSTALK_BOTH(PEXTRW, O::extract_element, 2, S::unary),
    CROSSTALK_BOTH(PEXTRD, O::extract_element, 4, S::unary),
    CROSSTALK_BOTH(PEXTRQ, O::extract_element, 8, S::unary),
    CROSSTALK_BOTH(EXTRACTPS, O::extract_element, 4, S::unary),
    CROSSTALK_BOTH(INSERTPS, O::insert_single, 4, S::binary),
    CROSSTALK_BOTH(BLENDPS, O::blend_immediate, 4, S::binary),
    CROSSTALK_BOTH(BLENDPD, O::blend_immediate, 8, S::binary),
    CROSSTALK_BOTH(PBLENDW, O::blend_immediate, 2, S::binary),
    {ZYDIS_MNEMONIC_VPBLENDD, O::blend_immediate, 4, S::binary},
    CROSSTALK_BOTH(BLENDVPS, O::blend_by_sign, 4, S::binary),
    CROSSTALK_BOTH(BLENDVPD, O::blend_by_sign, 8, S::binary),
    CROSSTALK_BOTH(PBLENDVB, O::blend_by_sign, 1, S::binary),
    CROSSTALK_MASK_BINARY(VPBLENDM, blend_by_mask),
    {ZYDIS_MNEMONIC_VBLENDMPS, O::blend_by_mask, 4, S::binary},
    {ZYDIS_MNEMONIC_VBLENDMPD, O::blend_by_mask, 8, S::binary},
    {ZYDIS_MNEMONIC_VALIGND, O::align_elements, 4, S::binary},
    {ZYDIS_MNEMONIC_VALIGNQ, O::align_elements, 8, S::binary},
    CROSSTALK_BOTH(UCOMISS, O::compare_to_flags, 4, S::compares),
    CROSSTALK_BOTH(UCOMISD, O::compare_to_flags, 8, S::compares),
    CROSSTALK_BOTH(COMISS, O::compare_to_flags, 4, S::compares),
    CROSSTALK_BOTH(COMISD, O::compare_to_flags, 8, S::compares),
    CROSSTALK_BOTH(PTEST, O::test_to_flags, 8, S::compares),
    {ZYDIS_MNEMONIC_VTESTPS, O::test_signs_to_flags, 4, S::compares},
    {ZYDIS_MNEMONIC_VTESTPD, O::test_signs_to_flags, 8, S::compares},
    CROSSTALK_BOTH(MOVMSKPS, O::move_signs, 4, S::unary),
    CROSSTALK_BOTH(MOVMSKPD, O::move_signs, 8, S::unary),
    CROSSTALK_BOTH(PMOVMSKB, O::move_signs, 1, S::unary),
    CROSSTALK_MASK(KMOV, mask_move),
    CROSSTALK_MASK(KNOT, mask_not),
    CROSSTALK_MASK_BINARY(KAND, mask_and),
    CROSSTALK_MASK_BINARY(KANDN, mask_and_not),
    CROSSTALK_MASK_BINARY(KOR, mask_or),
    CROSSTALK_MASK_BINARY(KXOR, mask_xor),
    CROSSTALK_MASK_BINARY(KXNOR, mask_xnor),
    CROSSTALK_MASK_BINARY(KADD, mask_add),
    CROSSTALK_MASK(KSHIFTL, mask_shift_left),
    CROSSTALK_MASK(KSHIFTR, mask_shift_right),
    {ZYDIS_MNEMONIC_KUNPCKBW, O::mask_unpack, 1, S::binary},
    {ZYDIS_MNEMONIC_KUNPCKWD, O::mask_unpack, 2, S::binary},
    {ZYDIS_MNEMONIC_KUNPCKDQ, O::mask_unpack, 4, S::binary},
    {ZYDIS_MNEMONIC_KORTESTB, O::mask_or_to_flags, 1, S::compares},
    {ZYDIS_MNEMONIC_KORTESTW, O::mask_or_to_flags, 2, S::compares},
    {ZYDIS_MNEMONIC_KORTESTD, O::mask_or_to_flags, 4, S::compares},
    {ZYDIS_MNEMONIC_KORTESTQ, O::mask_or_to_flags, 8, S::compares},
    {ZYDIS_MNEMONIC_KTESTB, O::mask_test_to_flags, 1, S::compares},
    {ZYDIS_MNEMONIC_KTESTW, O::mask_test_to_flags, 2, S::compares},
    {ZYDIS_MNEMONIC_KTESTD, O::mask_test_to_flags, 4, S::compares},
    {ZYDIS_MNEMONIC_KTESTQ, O::mask_test_to_flags, 8, S::compares},
    CROSSTALK_MASK(VPMOVM2, mask_to_vector),
    {ZYDIS_MNEMONIC_VPMOVB2M, O::vector_to_mask, 1, S::unary},
    {ZYDIS_MNEMONIC_VPMOVW2M, O::vector_to_mask, 2, S::unary},
    {ZYDIS_MNEMONIC_VPMOVD2M, O::vector_to_mask, 4, S::unary},
    {ZYDIS_MNEMONIC_VPMOVQ2M, O::vector_to_mask, 8, S::unary},
    {ZYDIS_MNEMONIC_VZEROUPPER, O::zero_upper, 0, S::unary},
    {ZYDIS_MNEMONIC_VZEROALL, O::zero_all, 0, S::unary},
    CROSSTALK_BOTH(LDMXCSR, O::load_mode, 4, S::compares),
};
constexpr std::size_t row_count = sizeof in_any_order / sizeof in_any_order[0];

constexpr bool before(const Row& a, const Row& b) { return a.mnemonic < b.mnemonic; }

constexpr std::array<Row, row_count> sorted() {
  std::array<Row, row_count> rows{};
  std::copy(std::begin(in_any_order), std::end(in_any_order), rows.begin());
  std::sort(rows.begin(), rows.end(), before);
  return rows;
}

constexpr std::array<Row, row_count> rows = sorted();
static_assert(std::adjacent_find(rows.begin(), rows.end(),
                                 [](const Row& a, const Row& b) { return a.mnemonic == b.mnemonic; }) == rows.end());

}  // namespace

const VectorRow* vector_row_of(ZydisMnemonic mnemonic) {
  const auto* const found = std::lower_bound(rows.begin(), rows.end(), Row{mnemonic, O::none, 0, S::unary}, before);
  return found != rows.end() && found->mnemonic == mnemonic ? found : nullptr;
}

}  // namespace crosstalk::in_target
