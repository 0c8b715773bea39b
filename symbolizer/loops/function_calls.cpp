// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/function_calls.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace crosstalk::symbolizer {

FunctionCalls::FunctionCalls(const ControlFlow& flow, const LoopNest& nest, ReadBytes read)
    : flow_(flow), nest_(nest), read_(std::move(read)) {
  const bool simple =
      flow_.entries.size() == 1 && std::none_of(nest_.loops.begin(), nest_.loops.end(),
                                                [&](const auto& loop) { return loop.header == flow_.entries.front(); });
  if (!simple) {
    return;
  }
  whole_.header = flow_.entries.front();
  whole_.blocks.resize(flow_.blocks.size());
  std::iota(whole_.blocks.begin(), whole_.blocks.end(), 0U);
  for (const std::uint32_t block : whole_.blocks) {
    if (flow_.blocks[block].successors.empty()) {
      whole_.latches.push_back(block);
    }
  }
  registers_.emplace(LoopCounters::since_call(flow_, whole_, read_));
  kept_ = registers_kept();
}

std::optional<std::uint16_t> FunctionCalls::registers_kept() const {
  std::uint16_t kept = 0xffff;
  for (const Instruction& instruction : flow_.instructions) {
    const bool leaves =
        instruction.target != 0 && (instruction.target < flow_.range.begin || instruction.target >= flow_.range.end);
    if (instruction.flow == Flow::call || instruction.flow == Flow::indirect_jump || leaves) {
      return std::nullopt;
    }
    RegisterForms forms = unchanged_registers();
    execute(read_(instruction.address), forms);
    for (std::size_t reg = 0; reg < general_registers; ++reg) {
      if (forms.at(reg) != Linear::of(reg)) {
        kept = static_cast<std::uint16_t>(kept & ~(1U << reg));
      }
    }
  }
  return kept;
}

std::optional<MomentReader> FunctionCalls::reader_at(std::uint64_t address) const {
  return registers_ ? registers_->reader_at(address) : std::nullopt;
}

/// The registers that branches on the way to the loop test; nullopt if a test is not understood.
std::optional<std::uint16_t> FunctionCalls::asked_before(const NaturalLoop& loop) const {
  std::vector<bool> leads(flow_.blocks.size());
  leads[loop.header] = true;
  for (bool more = true; more;) {
    more = false;
    for (std::uint32_t block = 0; block < flow_.blocks.size(); ++block) {
      const auto& next = flow_.blocks[block].successors;
      if (!leads[block] && std::any_of(next.begin(), next.end(), [&](std::uint32_t n) { return leads[n]; })) {
        leads[block] = more = true;
      }
    }
  }
  std::uint16_t asked = 0;
  for (std::uint32_t block = 0; block < flow_.blocks.size(); ++block) {
    const Block& of = flow_.blocks[block];
    if (!leads[block] || loop.contains(block) || flow_.instructions[of.last].flow != Flow::branch) {
      continue;
    }
    const auto difference = tested_difference(flow_, *registers_, of, read_);
    if (!difference) {
      return std::nullopt;
    }
    asked = static_cast<std::uint16_t>(asked | difference->registers());
  }
  return asked;
}

std::optional<VisitOfCall> FunctionCalls::visit(std::uint32_t loop, const LoopCounters& counters) const {
  const NaturalLoop& natural = nest_.loops[loop];
  if (!registers_ || natural.parent < nest_.loops.size()) {
    return std::nullopt;
  }
  const auto asked = asked_before(natural);
  for (const TripsBy by : {TripsBy::around, TripsBy::inside}) {
    const auto trips = asked ? trip_count(flow_, natural, counters, whole_, *registers_, read_, by) : std::nullopt;
    if (trips) {
      const unsigned told = by == TripsBy::around ? trips->distance.registers() | trips->step.registers() : 0U;
      return VisitOfCall{*trips, by, static_cast<std::uint16_t>(*asked | told)};
    }
  }
  return std::nullopt;
}

}  // namespace crosstalk::symbolizer
