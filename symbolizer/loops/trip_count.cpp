// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/trip_count.h"

#include <algorithm>
#include <cmath>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

using Until = TripCount::Until;

/// The only block that leads out of the loop; nullopt for several.
std::optional<std::uint32_t> only_exit(const ControlFlow& flow, const NaturalLoop& loop) {
  std::optional<std::uint32_t> exit;
  for (const std::uint32_t block : loop.blocks) {
    const auto& next = flow.blocks[block].successors;
    if (std::all_of(next.begin(), next.end(), [&](std::uint32_t n) { return loop.contains(n); })) {
      continue;
    }
    if (exit) {
      return std::nullopt;
    }
    exit = block;
  }
  return exit;
}

struct Condition {
  Until until = Until::zero;
  bool is_unsigned = false;
};

/// The condition on which the branch leaves the loop; `taken`: by being taken.
std::optional<Condition> leaves_when(ZydisMnemonic branch, bool taken) {
  switch (branch) {
    case ZYDIS_MNEMONIC_JZ:
      return taken ? std::optional(Condition{Until::zero}) : std::nullopt;
    case ZYDIS_MNEMONIC_JNZ:
      return taken ? std::nullopt : std::optional(Condition{Until::zero});
    case ZYDIS_MNEMONIC_JL:
    case ZYDIS_MNEMONIC_JS:
      return Condition{taken ? Until::negative : Until::not_negative};
    case ZYDIS_MNEMONIC_JNL:
    case ZYDIS_MNEMONIC_JNS:
      return Condition{taken ? Until::not_negative : Until::negative};
    case ZYDIS_MNEMONIC_JLE:
      return Condition{taken ? Until::not_positive : Until::positive};
    case ZYDIS_MNEMONIC_JNLE:
      return Condition{taken ? Until::positive : Until::not_positive};
    case ZYDIS_MNEMONIC_JB:
      return Condition{taken ? Until::negative : Until::not_negative, true};
    case ZYDIS_MNEMONIC_JNB:
      return Condition{taken ? Until::not_negative : Until::negative, true};
    case ZYDIS_MNEMONIC_JBE:
      return Condition{taken ? Until::not_positive : Until::positive, true};
    case ZYDIS_MNEMONIC_JNBE:
      return Condition{taken ? Until::positive : Until::not_positive, true};
    default:
      return std::nullopt;
  }
}

struct Test {
  Linear distance;
  Until until;
};

/// The value that sets the flags at the end of a block, as a form of registers at the loop's header. `by_order`: the
/// branch tests the order of unsigned numbers.
std::optional<Linear> tested_at(const ControlFlow& flow, const LoopCounters& counters, const Block& of, bool by_order,
                                const ReadBytes& read) {
  for (std::uint32_t i = of.last; i-- > of.first;) {
    const std::uint64_t address = flow.instructions[i].address;
    const auto before = counters.forms_at(address);
    const FlagEffect effect = before ? flag_effect(read(address), *before) : FlagEffect{true, false, std::nullopt};
    if (effect.writes) {
      return by_order && !effect.subtracts ? std::nullopt : effect.difference;
    }
  }
  return std::nullopt;
}

/// The test of the branch at the end of `block`, as a form of registers at the loop's header.
std::optional<Test> test_of(const ControlFlow& flow, const NaturalLoop& loop, const LoopCounters& counters,
                            std::uint32_t block, const ReadBytes& read) {
  const Block& of = flow.blocks[block];
  const Instruction& branch = flow.instructions[of.last];
  Decoded decoded;
  if (branch.flow != Flow::branch || !decode_full(read(branch.address), decoded)) {
    return std::nullopt;
  }
  const bool stays_when_taken = std::any_of(loop.blocks.begin(), loop.blocks.end(),
                                            [&](std::uint32_t b) { return flow.blocks[b].begin == branch.target; });
  const auto condition = leaves_when(decoded.instruction.mnemonic, !stays_when_taken);
  const auto difference =
      condition ? tested_at(flow, counters, of, condition->is_unsigned, read) : std::optional<Linear>();
  return difference ? std::optional(Test{*difference, condition->until}) : std::nullopt;
}

/// The change in an iteration of a form of registers at the header.
std::optional<Linear> change_of(const Linear& form, const LoopCounters& counters) {
  std::optional<Linear> change = Linear::number(0);
  for (std::size_t i = 0; change && i < general_registers; ++i) {
    if (form.factor.at(i) == 0 || counters.is_fixed(i)) {
      continue;
    }
    const auto step = counters.step(i);
    change = step ? add(*change, *step, form.factor.at(i)) : std::nullopt;
  }
  return change;
}

/// Registers at the entry of the inner loop, as forms of those at the header of the loop around.
std::optional<RegisterForms> forms_on_entry(const ControlFlow& flow, const NaturalLoop& inner, const NaturalLoop& outer,
                                            const LoopCounters& outer_counters) {
  std::optional<RegisterForms> forms;
  for (const std::uint32_t block : outer.blocks) {
    const auto& next = flow.blocks[block].successors;
    if (inner.contains(block) || std::find(next.begin(), next.end(), inner.header) == next.end()) {
      continue;
    }
    const auto behind = outer_counters.behind(block);
    if (!behind) {
      return std::nullopt;
    }
    forms ? meet(*forms, *behind) : void(forms = behind);
  }
  return forms;
}

/// Tells if every iteration of the outer loop enters the inner one.
class Entered {
 public:
  Entered(const ControlFlow& flow, const NaturalLoop& inner, const NaturalLoop& outer, const LoopCounters& counters,
          const ReadBytes& read)
      : flow_(flow), inner_(inner), outer_(outer), counters_(counters), read_(read) {}

  /// True if the inner header lies on all ways to a latch. A guard before it ("is there anything to do?") on registers
  /// that the loop around does not change goes the same way each time; samples in the inner loop show that it leads
  /// there.
  [[nodiscard]] bool always() const {
    const std::vector<bool> passed = reached_from(outer_.header, true);
    return std::none_of(outer_.latches.begin(), outer_.latches.end(),
                        [&](std::uint32_t latch) { return passed[latch]; });
  }

 private:
  /// Blocks reachable within one iteration of the loop around and before the inner loop.
  [[nodiscard]] std::vector<bool> reached_from(std::uint32_t from, bool past_guards) const {
    std::vector<bool> reached(flow_.blocks.size());
    std::vector<std::uint32_t> open{from};
    while (!open.empty()) {
      const std::uint32_t block = open.back();
      open.pop_back();
      if (reached[block]) {
        continue;
      }
      reached[block] = true;
      for (const std::uint32_t next : flow_.blocks[block].successors) {
        const bool ends = block == inner_.header || next == outer_.header || !outer_.contains(next);
        const bool never = past_guards && next != inner_.header && is_guard(block) && !enters(next);
        if (!ends && !never) {
          open.push_back(next);
        }
      }
    }
    reached[inner_.header] = false;
    return reached;
  }

  [[nodiscard]] bool enters(std::uint32_t from) const {
    std::vector<bool> reached = reached_from(from, false);
    for (std::uint32_t block = 0; block < reached.size(); ++block) {
      const auto& next = flow_.blocks[block].successors;
      if (reached[block] && std::find(next.begin(), next.end(), inner_.header) != next.end()) {
        return true;
      }
    }
    return from == inner_.header;
  }

  [[nodiscard]] bool is_guard(std::uint32_t block) const {
    const Block& of = flow_.blocks[block];
    if (inner_.contains(block) || flow_.instructions[of.last].flow != Flow::branch) {
      return false;
    }
    const auto difference = tested_at(flow_, counters_, of, false, read_);
    return difference && counters_.is_fixed(*difference) && leads_to_inner(of);
  }

  [[nodiscard]] bool leads_to_inner(const Block& of) const {
    return std::any_of(of.successors.begin(), of.successors.end(),
                       [&](std::uint32_t next) { return outer_.contains(next) && enters(next); });
  }

  const ControlFlow& flow_;
  const NaturalLoop& inner_;
  const NaturalLoop& outer_;
  const LoopCounters& counters_;
  const ReadBytes& read_;
};

/// `known`: the registers of `moment` that the form may use.
std::optional<double> evaluate(const Linear& form, const LoopMoment& moment, std::uint16_t known, bool narrow) {
  std::uint64_t value = form.constant;
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (form.factor.at(i) == 0) {
      continue;
    }
    if (!moment.has(known, i) || (moment.has(moment.narrow, i) && !narrow)) {
      return std::nullopt;
    }
    value += static_cast<std::uint64_t>(static_cast<std::int64_t>(form.factor.at(i))) * moment.value.at(i);
  }
  return narrow ? static_cast<double>(static_cast<std::int32_t>(value))
                : static_cast<double>(static_cast<std::int64_t>(value));
}

/// The first k >= 0 with distance + k * step > 0, or >= 0.
std::optional<double> rounds_until(double distance, double step, bool strictly) {
  if (strictly ? distance > 0 : distance >= 0) {
    return 0;
  }
  if (step <= 0) {
    return std::nullopt;
  }
  return strictly ? std::floor(-distance / step) + 1 : std::ceil(-distance / step);
}

}  // namespace

std::optional<Linear> tested_difference(const ControlFlow& flow, const LoopCounters& counters, const Block& block,
                                        const ReadBytes& read) {
  return tested_at(flow, counters, block, false, read);
}

std::optional<double> TripCount::at(const LoopMoment& around) const {
  const bool narrow = distance.narrow || step.narrow;
  const auto from = evaluate(distance, around, around.fixed, narrow);
  const auto by = evaluate(step, around, around.fixed, narrow);
  if (!from || !by || *by == 0) {
    return std::nullopt;
  }
  std::optional<double> rounds;
  switch (until) {
    case Until::zero:
      rounds = -*from / *by;
      rounds = *rounds >= 0 && *rounds == std::floor(*rounds) ? rounds : std::nullopt;
      break;
    case Until::not_negative:
    case Until::positive:
      rounds = rounds_until(*from, *by, until == Until::positive);
      break;
    case Until::not_positive:
    case Until::negative:
      rounds = rounds_until(-*from, -*by, until == Until::negative);
      break;
  }
  return rounds ? std::optional(*rounds + (tested_first ? 0 : 1)) : std::nullopt;
}

std::optional<double> TripCount::done(const LoopMoment& inside, const LoopMoment& around) const {
  const bool narrow = distance.narrow || step.narrow || tested.narrow;
  const auto from = evaluate(distance, around, around.fixed, narrow);
  const auto by = evaluate(step, around, around.fixed, narrow);
  const auto now = evaluate(tested, inside, inside.fixed | inside.counters, narrow);
  const auto most = at(around);
  if (!from || !by || !now || !most || *by == 0) {
    return std::nullopt;
  }
  const double done = (*now - *from) / *by;
  return done >= 0 && done <= *most && done == std::floor(done) ? std::optional(done) : std::nullopt;
}

namespace {

/// Forms within the inner loop: counters that start at a constant have it, registers that it does not change stay.
RegisterForms as_inside(const RegisterForms& entry, const LoopCounters& inner) {
  RegisterForms forms;
  for (std::size_t reg = 0; reg < general_registers; ++reg) {
    const bool number = entry.at(reg) && *entry.at(reg) == Linear{{}, entry.at(reg)->constant, entry.at(reg)->narrow};
    forms.at(reg) = inner.is_fixed(reg) ? Linear::of(reg) : number ? entry.at(reg) : std::nullopt;
  }
  return forms;
}

}  // namespace

std::optional<TripCount> trip_count(const ControlFlow& flow, const NaturalLoop& inner,
                                    const LoopCounters& inner_counters, const NaturalLoop& outer,
                                    const LoopCounters& outer_counters, const ReadBytes& read, TripsBy by) {
  const auto exit = only_exit(flow, inner);
  if (!exit) {
    return std::nullopt;
  }
  const bool is_latch = std::find(inner.latches.begin(), inner.latches.end(), *exit) != inner.latches.end();
  if (!is_latch && *exit != inner.header) {
    return std::nullopt;
  }
  const auto test = test_of(flow, inner, inner_counters, *exit, read);
  const auto change = test ? change_of(test->distance, inner_counters) : std::nullopt;
  const auto entry = forms_on_entry(flow, inner, outer, outer_counters);
  if (!change || !entry) {
    return std::nullopt;
  }
  const bool inside = by == TripsBy::inside;
  const RegisterForms forms = inside ? as_inside(*entry, inner_counters) : *entry;
  const LoopCounters& told_by = inside ? inner_counters : outer_counters;
  const auto distance = substitute(test->distance, forms);
  const auto step = substitute(*change, forms);
  if (!distance || !step || !told_by.is_fixed(*distance) || !told_by.is_fixed(*step) ||
      !Entered(flow, inner, outer, outer_counters, read).always()) {
    return std::nullopt;
  }
  return TripCount{*distance, *step, test->until, !is_latch, test->distance};
}

}  // namespace crosstalk::symbolizer
