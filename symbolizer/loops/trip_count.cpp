// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/trip_count.h"

#include <algorithm>
#include <cmath>

#include "symbolizer/cfg/zydis_decode.h"

namespace crosstalk::symbolizer {
namespace {

using Until = TripCount::Until;

bool contains(const NaturalLoop& loop, std::uint32_t block) {
  return std::binary_search(loop.blocks.begin(), loop.blocks.end(), block);
}

/// The only block that leads out of the loop; nullopt for several.
std::optional<std::uint32_t> only_exit(const ControlFlow& flow, const NaturalLoop& loop) {
  std::optional<std::uint32_t> exit;
  for (const std::uint32_t block : loop.blocks) {
    const auto& next = flow.blocks[block].successors;
    if (std::all_of(next.begin(), next.end(), [&](std::uint32_t n) { return contains(loop, n); })) {
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

/// When the branch leaves the loop; `taken`: by being taken.
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

/// What the branch at the end of `block` asks, in terms of registers at the loop's header.
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
  for (std::uint32_t i = of.last; condition && i-- > of.first;) {
    const std::uint64_t address = flow.instructions[i].address;
    const auto before = counters.forms_at(address);
    const FlagEffect effect = before ? flag_effect(read(address), *before) : FlagEffect{true, false, std::nullopt};
    if (!effect.writes) {
      continue;
    }
    if (!effect.difference || (condition->is_unsigned && !effect.subtracts)) {
      return std::nullopt;
    }
    return Test{*effect.difference, condition->until};
  }
  return std::nullopt;
}

/// By how much a form of registers at the header changes an iteration.
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

/// Registers when the inner loop is entered, in terms of those at the header of the loop around.
std::optional<RegisterForms> forms_on_entry(const ControlFlow& flow, const NaturalLoop& inner, const NaturalLoop& outer,
                                            const LoopCounters& outer_counters) {
  std::optional<RegisterForms> forms;
  for (const std::uint32_t block : outer.blocks) {
    const auto& next = flow.blocks[block].successors;
    if (contains(inner, block) || std::find(next.begin(), next.end(), inner.header) == next.end()) {
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

/// Whether every iteration of the loop around enters the inner one: its header lies on all ways to a latch.
bool always_entered(const ControlFlow& flow, const NaturalLoop& inner, const NaturalLoop& outer) {
  const std::vector<std::uint32_t> dominator = immediate_dominators(flow);
  return std::all_of(outer.latches.begin(), outer.latches.end(), [&](std::uint32_t latch) {
    for (std::uint32_t block = latch; block < dominator.size(); block = dominator[block]) {
      if (block == inner.header) {
        return true;
      }
    }
    return false;
  });
}

bool on_fixed_only(const Linear& form, const LoopCounters& counters) {
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (form.factor.at(i) != 0 && !counters.is_fixed(i)) {
      return false;
    }
  }
  return true;
}

std::optional<double> evaluate(const Linear& form, const LoopMoment& moment, bool narrow) {
  std::uint64_t value = form.constant;
  for (std::size_t i = 0; i < general_registers; ++i) {
    if (form.factor.at(i) == 0) {
      continue;
    }
    if (!moment.has(moment.fixed, i)) {
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

std::optional<double> TripCount::at(const LoopMoment& around) const {
  const bool narrow = distance.narrow || step.narrow;
  const auto from = evaluate(distance, around, narrow);
  const auto by = evaluate(step, around, narrow);
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

std::optional<TripCount> trip_count(const ControlFlow& flow, const NaturalLoop& inner,
                                    const LoopCounters& inner_counters, const NaturalLoop& outer,
                                    const LoopCounters& outer_counters, const ReadBytes& read) {
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
  const auto distance = substitute(test->distance, *entry);
  const auto step = substitute(*change, *entry);
  if (!distance || !step || !on_fixed_only(*distance, outer_counters) || !on_fixed_only(*step, outer_counters) ||
      !always_entered(flow, inner, outer)) {
    return std::nullopt;
  }
  return TripCount{*distance, *step, test->until, !is_latch};
}

}  // namespace crosstalk::symbolizer
