// SPDX-License-Identifier: Apache-2.0
// A forward data-flow problem over the loop's body: which registers are linear in what they were at the header. Each
// register of a block goes from unvisited to a form to unknown and never back, so it ends.
#include "symbolizer/loop_counters.h"

#include <algorithm>
#include <set>
#include <utility>

namespace crosstalk::symbolizer {
namespace {

std::uint16_t bit(std::size_t reg) { return static_cast<std::uint16_t>(1U << reg); }

std::uint64_t evaluate(const Linear& form, const LoopMoment& moment, std::size_t but) {
  std::uint64_t value = form.constant;
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (i != but) {
      value += static_cast<std::uint64_t>(static_cast<std::int64_t>(form.factor.at(i))) * moment.value.at(i);
    }
  }
  return value;
}

/// The register and a constant.
bool displaced(Linear form, std::size_t reg) {
  form.constant = 0;
  return form == Linear::of(reg);
}

constexpr std::size_t none = general_registers;

}  // namespace

LoopCounters::LoopCounters(const ControlFlow& flow, const NaturalLoop& loop, ReadBytes read)
    : flow_(flow), read_(std::move(read)) {
  solve(loop);
  find_counters(loop);
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

bool LoopCounters::on_fixed_only(const Linear& form, std::size_t but, std::uint16_t fixed) const {
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (i != but && form.factor.at(i) != 0 && (fixed & bit(i)) == 0) {
      return false;
    }
  }
  return true;
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
      fixed_ |= bit(i);
    }
  }
  for (std::size_t i = 0; i < general_registers; ++i) {
    const std::optional<Linear>& form = around->at(i);
    if (form && form->factor.at(i) == 1 && (fixed_ & bit(i)) == 0 && on_fixed_only(*form, i, fixed_)) {
      counters_ |= bit(i);
      step_.at(i) = *form;
      step_.at(i).factor.at(i) = 0;
    }
  }
}

std::optional<Linear> LoopCounters::step(std::size_t reg) const {
  return (counters_ & bit(reg)) != 0 ? std::optional(step_.at(reg)) : std::nullopt;
}

std::optional<RegisterForms> LoopCounters::behind(std::uint32_t block) const {
  const auto before = before_.find(block);
  return before != before_.end() ? std::optional(behind(block, before->second)) : std::nullopt;
}

std::optional<RegisterForms> LoopCounters::forms_at(std::uint64_t address) const {
  const auto next = std::upper_bound(flow_.blocks.begin(), flow_.blocks.end(), address,
                                     [](std::uint64_t a, const Block& block) { return a < block.begin; });
  if (next == flow_.blocks.begin() || address >= std::prev(next)->end) {
    return std::nullopt;
  }
  const auto block = before_.find(static_cast<std::uint32_t>(std::prev(next) - flow_.blocks.begin()));
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

void LoopCounters::read_fixed(const RegisterForms& forms, const Registers& registers, LoopMoment& moment) const {
  for (std::size_t i = 0; i < general_registers; ++i) {
    for (std::size_t holder = 0; is_fixed(i) && holder < general_registers; ++holder) {
      if (forms.at(holder) && displaced(*forms.at(holder), i)) {
        moment.value.at(i) = registers.value.at(holder) - forms.at(holder)->constant;
        moment.fixed |= bit(i);
        break;
      }
    }
  }
}

void LoopCounters::read_counter(std::size_t reg, const RegisterForms& forms, const Registers& registers,
                                LoopMoment& moment) const {
  for (std::size_t holder = 0; holder < general_registers; ++holder) {
    const std::optional<Linear>& form = forms.at(holder);
    if (!form || form->factor.at(reg) != 1 || !on_fixed_only(*form, reg, moment.fixed)) {
      continue;
    }
    const bool narrow = form->narrow || step_.at(reg).narrow;
    const std::uint64_t raw = evaluate(step_.at(reg), moment, none);
    const auto step = narrow ? static_cast<std::int32_t>(raw) : static_cast<std::int64_t>(raw);
    if (step != 0) {
      moment.value.at(reg) = registers.value.at(holder) - evaluate(*form, moment, reg);
      moment.step.at(reg) = step;
      moment.counters |= bit(reg);
      moment.narrow |= narrow ? bit(reg) : 0;
    }
    return;
  }
}

std::optional<LoopMoment> LoopCounters::at(std::uint64_t address, const Registers& registers) const {
  auto seen = forms_seen_.find(address);
  if (seen == forms_seen_.end()) {
    seen = forms_seen_.emplace(address, forms_at(address)).first;
  }
  const std::optional<RegisterForms>& forms = seen->second;
  if (!forms) {
    return std::nullopt;
  }
  LoopMoment moment;
  read_fixed(*forms, registers, moment);
  for (std::size_t i = 0; i < general_registers; ++i) {
    if ((counters_ & bit(i)) != 0 && on_fixed_only(step_.at(i), none, moment.fixed)) {
      read_counter(i, *forms, registers, moment);
    }
  }
  return moment;
}

}  // namespace crosstalk::symbolizer
