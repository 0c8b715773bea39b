// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/flop_kinds.h"

#include <numeric>
#include <string_view>

#include "symbolizer/cfg/zydis_decode.h"
#include "symbolizer/loops/instruction_work.h"

namespace crosstalk::symbolizer {
namespace {

/// The operation of a mnemonic without its v; nullopt for any other.
std::optional<FlopOperation> operation_of(std::string_view name) {
  if (is_fused(name)) {
    return FlopOperation::fma;
  }
  for (const std::string_view add : {"add", "sub", "hadd", "hsub", "min", "max"}) {
    if (name.starts_with(add)) {
      return FlopOperation::add;
    }
  }
  return name.starts_with("mul") ? std::optional(FlopOperation::mul) : std::nullopt;
}

}  // namespace

std::optional<InstructionFlops> flops_by_kind(std::span<const std::uint8_t> code) {
  const auto work = work_of(code);
  if (!work || !work->flops) {
    return std::nullopt;
  }
  InstructionFlops result{*work->flops};
  if (result.flops == 0) {
    return result;
  }
  Decoded decoded;
  if (!decode_full(code, decoded)) {
    return std::nullopt;
  }
  std::string_view name = mnemonic_of(decoded.instruction);
  name.remove_prefix(name.front() == 'v' ? 1 : 0);
  const auto operation = operation_of(name);
  const bool x87 = name.front() == 'f' && operation != FlopOperation::fma;
  const char element = name.back();
  if (!operation || x87 || (element != 's' && element != 'd')) {
    result.other = true;
    return result;
  }
  result.operation = *operation;
  result.type = element == 's' ? FlopType::float32 : FlopType::float64;
  result.width = name[name.size() - 2] == 'p' ? width_of_vector(decoded.operands[0].size) : FlopWidth::scalar;
  return result;
}

void FlopsByKind::add(const InstructionFlops& more) {
  (more.other ? other : of[index(more.width, more.type, more.operation)]) += more.flops;
}

void FlopsByKind::add(const FlopsByKind& more, double times) {
  for (std::size_t i = 0; i < kinds; ++i) {
    of[i] += more.of[i] * times;
  }
  other += more.other * times;
}

double FlopsByKind::total() const { return std::accumulate(of.begin(), of.end(), other); }

}  // namespace crosstalk::symbolizer
