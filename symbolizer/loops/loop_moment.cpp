// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/loop_moment.h"

namespace crosstalk::symbolizer {
namespace {

constexpr std::size_t no_register = general_registers;

std::uint16_t register_bit(std::size_t reg) { return static_cast<std::uint16_t>(1U << reg); }

/// True if the form is the register plus a constant.
bool displaced(Linear form, std::size_t reg) {
  form.constant = 0;
  return form == Linear::of(reg);
}

}  // namespace

bool on_fixed_only(const Linear& form, std::size_t but, std::uint16_t fixed) {
  return (form.registers() & ~(fixed | 1U << but)) == 0;
}

MomentReader::MomentReader(const LoopRegisters& loop, const RegisterForms& forms) {
  find_fixed(loop, forms);
  for (std::size_t i = 0; i < general_registers; ++i) {
    if ((loop.counters & register_bit(i)) != 0 && on_fixed_only(loop.step.at(i), no_register, known_)) {
      find_counter(loop, forms, i);
    }
  }
}

void MomentReader::find_fixed(const LoopRegisters& loop, const RegisterForms& forms) {
  for (std::size_t i = 0; i < general_registers; ++i) {
    for (std::size_t holder = 0; (loop.fixed & register_bit(i)) != 0 && holder < general_registers; ++holder) {
      if (forms.at(holder) && displaced(*forms.at(holder), i)) {
        fixed_.push_back({i, holder, forms.at(holder)->constant});
        known_ |= register_bit(i);
        break;
      }
    }
  }
}

void MomentReader::find_counter(const LoopRegisters& loop, const RegisterForms& forms, std::size_t reg) {
  for (std::size_t holder = 0; holder < general_registers; ++holder) {
    const std::optional<Linear>& form = forms.at(holder);
    if (form && form->factor.at(reg) == 1 && on_fixed_only(*form, reg, known_)) {
      const Linear& step = loop.step.at(reg);
      counters_.push_back({reg, holder, sum_of(*form, reg), sum_of(step, no_register), form->narrow || step.narrow});
      return;
    }
  }
}

MomentReader::Sum MomentReader::sum_of(const Linear& form, std::size_t but) {
  Sum sum{form.constant, {}};
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (i != but && form.factor.at(i) != 0) {
      sum.terms.push_back({i, form.factor.at(i)});
    }
  }
  return sum;
}

std::uint64_t MomentReader::Sum::at(const LoopMoment& moment) const {
  std::uint64_t value = constant;
  for (const Term& term : terms) {
    value += static_cast<std::uint64_t>(std::int64_t{term.factor}) * moment.value[term.reg];
  }
  return value;
}

LoopMoment MomentReader::read(const Registers& registers) const {
  LoopMoment moment;
  moment.fixed = known_;
  for (const Fixed& fixed : fixed_) {
    moment.value[fixed.reg] = registers.value[fixed.holder] - fixed.more;
  }
  for (const Counter& counter : counters_) {
    const std::uint64_t raw = counter.step.at(moment);
    const auto step = counter.narrow ? static_cast<std::int32_t>(raw) : static_cast<std::int64_t>(raw);
    if (step != 0) {
      moment.value[counter.reg] = registers.value[counter.holder] - counter.more.at(moment);
      moment.step[counter.reg] = step;
      moment.counters |= register_bit(counter.reg);
      moment.narrow |= counter.narrow ? register_bit(counter.reg) : 0;
    }
  }
  return moment;
}

}  // namespace crosstalk::symbolizer
