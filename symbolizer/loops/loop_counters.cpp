// SPDX-License-Identifier: Apache-2.0
// A forward data-flow problem over the loop's body: finds the registers that are linear in those at the header. Each
// register of a block goes from unvisited to a form to unknown and never back, so the search ends.
#include "symbolizer/loops/loop_counters.h"

#include <algorithm>
#include <set>
#include <utility>

namespace crosstalk::symbolizer {
namespace {

std::uint16_t bit(std::size_t reg) { return static_cast<std::uint16_t>(1U << reg); }

}  // namespace

LoopCounters::LoopCounters(const ControlFlow& flow, const NaturalLoop& loop, ReadBytes read)
    : flow_(flow), read_(std::move(read)) {
  solve(loop);
  find_counters(loop);
}

LoopCounters::LoopCounters(const ControlFlow& flow, ReadBytes read) : flow_(flow), read_(std::move(read)) {}

LoopCounters LoopCounters::since_call(const ControlFlow& flow, const NaturalLoop& whole, ReadBytes read) {
  LoopCounters registers(flow, std::move(read));
  registers.solve(whole);
  registers.registers_.fixed = 0xffff;
  return registers;
}

RegisterForms LoopCounters::behind(std::uint32_t block, RegisterForms forms) const {
  const Block& of = flow_.blocks[block];
  for (std::uint32_t i = of.first; i <= of.last; ++i) {
    execute(read_(flow_.instructions[i].address), forms);
  }
  return forms;
}

void LoopCounters::solve(const NaturalLoop& loop) {
  before_[loop.header] = unchanged_registers();
  std::set<std::uint32_t> work{loop.header};
  while (!work.empty()) {
    const std::uint32_t block = *work.begin();
    work.erase(work.begin());
    const RegisterForms after = behind(block, before_.at(block));
    for (const std::uint32_t next : flow_.blocks[block].successors) {
      if (next == loop.header || !std::binary_search(loop.blocks.begin(), loop.blocks.end(), next)) {
        continue;
      }
      const auto [known, fresh] = before_.try_emplace(next, after);
      RegisterForms met = known->second;
      meet(met, after);
      if (fresh || met != known->second) {
        known->second = met;
        work.insert(next);
      }
    }
  }
}

void LoopCounters::find_counters(const NaturalLoop& loop) {
  std::optional<RegisterForms> around;
  for (const std::uint32_t latch : loop.latches) {
    const auto before = before_.find(latch);
    if (before == before_.end()) {
      continue;  // not reached from the header within the loop
    }
    const RegisterForms after = behind(latch, before->second);
    around ? meet(*around, after) : void(around = after);
  }
  if (!around) {
    return;
  }
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (around->at(i) == Linear::of(i)) {
      registers_.fixed |= bit(i);
    }
  }
  for (std::size_t i = 0; i < general_registers; ++i) {
    const std::optional<Linear>& form = around->at(i);
    if (form && form->factor.at(i) == 1 && (registers_.fixed & bit(i)) == 0 &&
        on_fixed_only(*form, i, registers_.fixed)) {
      registers_.counters |= bit(i);
      registers_.step.at(i) = *form;
      registers_.step.at(i).factor.at(i) = 0;
    }
  }
}

std::optional<Linear> LoopCounters::step(std::size_t reg) const {
  return (registers_.counters & bit(reg)) != 0 ? std::optional(registers_.step.at(reg)) : std::nullopt;
}

std::optional<RegisterForms> LoopCounters::behind(std::uint32_t block) const {
  const auto before = before_.find(block);
  return before != before_.end() ? std::optional(behind(block, before->second)) : std::nullopt;
}

std::optional<RegisterForms> LoopCounters::forms_at(std::uint64_t address) const {
  const auto holding = flow_.block_at(address);
  const auto block = holding ? before_.find(*holding) : before_.end();
  if (block == before_.end()) {
    return std::nullopt;
  }
  RegisterForms forms = block->second;
  for (std::uint32_t i = flow_.blocks[block->first].first;; ++i) {
    const std::uint64_t at = flow_.instructions[i].address;
    if (at >= address) {
      return at == address ? std::optional(forms) : std::nullopt;
    }
    if (i == flow_.blocks[block->first].last) {
      return std::nullopt;
    }
    execute(read_(at), forms);
  }
}

std::optional<MomentReader> LoopCounters::reader_at(std::uint64_t address) const {
  const auto forms = forms_at(address);
  return forms ? std::optional(MomentReader(registers_, *forms)) : std::nullopt;
}

}  // namespace crosstalk::symbolizer
