// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/loop_operands.h"

#include <map>

#include "symbolizer/cfg/instructions.h"
#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

LoopOperand operand_of(const MemoryAccess& access, std::span<const std::uint8_t> code, const LoopCounters& counters) {
  LoopOperand operand;
  operand.instruction = access.instruction;
  operand.width = access.width;
  operand.loads = loads(access.kind);
  operand.stores = stores(access.kind);
  Decoded decoded;
  operand.streaming = decode_full(code, decoded) && is_streaming(decoded.instruction);
  if (access.base == Register::rip || access.segment_fs) {
    operand.one_place = !access.index;
    return operand;
  }
  const auto forms = counters.forms_at(access.instruction);
  // An access without a width has no computable address (memory_access()).
  operand.form = forms && access.width != 0 ? address_form(access, 0, *forms) : std::nullopt;
  operand.one_place = operand.form && counters.is_fixed(*operand.form);
  return operand;
}

}  // namespace

std::optional<OperandPlace> place_of(const LoopOperand& operand, const LoopMoment& moment) {
  if (!operand.form || operand.form->narrow) {
    return std::nullopt;
  }
  OperandPlace place{operand.form->constant, 0};
  const unsigned known = moment.fixed | (moment.counters & ~static_cast<unsigned>(moment.narrow));
  for (std::size_t reg = 0; reg < general_registers; ++reg) {
    const std::int64_t factor = operand.form->factor.at(reg);
    if (factor == 0) {
      continue;
    }
    if ((known >> reg & 1U) == 0) {
      return std::nullopt;
    }
    place.address += static_cast<std::uint64_t>(factor) * moment.value.at(reg);
    place.stride += moment.has(moment.counters, reg) ? factor * moment.step.at(reg) : 0;
  }
  return place;
}

std::vector<LoopOperand> loop_operands(LoopAnatomy& anatomy, std::uint32_t loop) {
  std::map<std::uint64_t, LoopOperand> found;
  const LoopCounters& counters = anatomy.counters(loop);
  for (const Way& way : anatomy.ways(loop)) {
    for (std::size_t i = 0; i < way.addresses.size(); ++i) {
      const auto access = memory_access(way.code[i], way.addresses[i]);
      if (access && access->kind != AccessKind::none) {
        found.try_emplace(way.addresses[i], operand_of(*access, way.code[i], counters));
      }
    }
  }
  std::vector<LoopOperand> operands;
  operands.reserve(found.size());
  for (const auto& [address, operand] : found) {
    operands.push_back(operand);
  }
  return operands;
}

}  // namespace crosstalk::symbolizer
