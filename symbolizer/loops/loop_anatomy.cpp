// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/loop_anatomy.h"

#include <algorithm>
#include <set>
#include <utility>

namespace crosstalk::symbolizer {
namespace {
constexpr std::size_t most_ways = 32;
constexpr std::size_t most_instructions = 1024;  // of one way
constexpr std::size_t most_blocks = 64;
// Limit of the search for ways. An interpreter's loop has more paths of most_blocks blocks than can be followed, and
// few or none may lead back to the header, so a limit on the ways found would not end the search.
constexpr std::size_t most_steps = 16384;
}  // namespace

LoopAnatomy::LoopAnatomy(const ControlFlow& flow, ReadBytes read)
    : flow_(flow), read_(std::move(read)), nest_(natural_loops(flow)), parts_(nest_.loops.size()) {}

std::uint32_t LoopAnatomy::innermost(std::uint64_t address) const {
  const auto block = flow_.block_at(address);
  return block ? nest_.innermost[*block] : Loop::no_parent;
}

const LoopCounters& LoopAnatomy::counters(std::uint32_t loop) {
  auto& counters = parts_[loop].counters;
  if (!counters) {
    counters = std::make_unique<LoopCounters>(flow_, nest_.loops[loop], read_);
  }
  return *counters;
}

const IterationWork& LoopAnatomy::work(std::uint32_t loop) {
  auto& work = parts_[loop].work;
  if (!work) {
    work = iteration_work(flow_, nest_, loop, read_);
  }
  return *work;
}

const std::optional<TripCount>& LoopAnatomy::trips(std::uint32_t loop) {
  auto& trips = parts_[loop].trips;
  if (!trips) {
    trips.emplace();
    const std::uint32_t around = parent(loop);
    if (around < nest_.loops.size()) {
      *trips = trip_count(flow_, nest_.loops[loop], counters(loop), nest_.loops[around], counters(around), read_);
    }
  }
  return *trips;
}

const std::vector<Way>& LoopAnatomy::ways(std::uint32_t loop) {
  auto& ways = parts_[loop].ways;
  if (!ways) {
    ways.emplace();
    Search search = {{nest_.loops[loop].header}, {}, most_steps};
    extend(loop, search);
    if (search.found.size() <= most_ways && search.steps_left > 0) {
      *ways = std::move(search.found);
    }
  }
  return *ways;
}

/// The successors of `block` within `loop`. For a block of an inner loop, the targets of that loop's exits.
std::vector<std::uint32_t> LoopAnatomy::behind(std::uint32_t loop, std::uint32_t block) const {
  std::uint32_t inner = nest_.innermost[block];
  while (inner != loop && inner < nest_.loops.size() && nest_.loops[inner].parent != loop) {
    inner = nest_.loops[inner].parent;
  }
  if (inner == loop || inner >= nest_.loops.size()) {
    return flow_.blocks[block].successors;
  }
  std::vector<std::uint32_t> exits;
  const std::vector<std::uint32_t>& inside = nest_.loops[inner].blocks;
  for (const std::uint32_t own : inside) {
    for (const std::uint32_t next : flow_.blocks[own].successors) {
      if (!std::binary_search(inside.begin(), inside.end(), next) &&
          std::find(exits.begin(), exits.end(), next) == exits.end()) {
        exits.push_back(next);
      }
    }
  }
  return exits;
}

/// Adds all ways that begin with `search.blocks`, which lead from the header on; stops at one more than the limit.
void LoopAnatomy::extend(std::uint32_t loop, Search& search) {
  const NaturalLoop& natural = nest_.loops[loop];
  std::vector<std::uint32_t>& blocks = search.blocks;
  for (const std::uint32_t next : behind(loop, blocks.back())) {
    if (search.found.size() > most_ways || blocks.size() > most_blocks || search.steps_left == 0) {
      return;
    }
    --search.steps_left;
    if (next == natural.header) {
      search.found.push_back(way_through(blocks));
    } else if (std::binary_search(natural.blocks.begin(), natural.blocks.end(), next) &&
               std::find(blocks.begin(), blocks.end(), next) == blocks.end()) {
      blocks.push_back(next);
      extend(loop, search);
      blocks.pop_back();
    }
  }
}

/// True if the branch at the end of the way's first block may lead out of `loop` without coming back to the way. A
/// branch that only skips some instructions does not.
bool LoopAnatomy::decides(std::uint32_t loop, std::span<const std::uint32_t> way) const {
  const NaturalLoop& natural = nest_.loops[loop];
  std::set<std::uint32_t> met(way.begin(), way.end());
  met.insert(natural.header);
  std::vector<std::uint32_t> open = flow_.blocks[way.front()].successors;
  while (!open.empty()) {
    const std::uint32_t block = open.back();
    open.pop_back();
    if (!std::binary_search(natural.blocks.begin(), natural.blocks.end(), block)) {
      return true;
    }
    if (met.insert(block).second) {
      open.insert(open.end(), flow_.blocks[block].successors.begin(), flow_.blocks[block].successors.end());
    }
  }
  return false;
}

Way LoopAnatomy::way_through(std::span<const std::uint32_t> blocks) const {
  Way way;
  const std::uint32_t loop = nest_.innermost[blocks.front()];
  for (std::size_t at = 0; at < blocks.size(); ++at) {
    const std::uint32_t index = blocks[at];
    const Block& block = flow_.blocks[index];
    if (nest_.innermost[index] != loop) {
      continue;  // of a loop inside
    }
    for (std::uint32_t i = block.first; i <= block.last && way.code.size() < most_instructions; ++i) {
      way.addresses.push_back(flow_.instructions[i].address);
      way.code.push_back(read_(flow_.instructions[i].address));
    }
    if (way.code.size() < most_instructions && decides(loop, blocks.subspan(at))) {
      way.decisions.push_back(way.code.size() - 1);
    }
  }
  return way;
}

const FunctionCalls& LoopAnatomy::calls() {
  if (calls_ == nullptr) {
    calls_ = std::make_unique<FunctionCalls>(flow_, nest_, read_);
  }
  return *calls_;
}

namespace {

/// Registers at the call and after it, as forms of those before the iteration.
struct AroundCall {
  RegisterForms at_call, behind;
};

/// Follows one way round a loop. nullopt if it does not make the call exactly once, or may call the same callee
/// elsewhere.
std::optional<AroundCall> along(const ControlFlow& flow, const Way& way, const Instruction& call, std::uint16_t kept) {
  RegisterForms forms = unchanged_registers();
  std::optional<RegisterForms> at_call;
  for (std::size_t i = 0; i < way.addresses.size(); ++i) {
    const Instruction* const instruction = flow.holding(way.addresses[i]);
    if (instruction == nullptr) {
      return std::nullopt;
    }
    if (instruction->address != call.address) {
      if (instruction->flow == Flow::call && (instruction->target == 0 || instruction->target == call.target)) {
        return std::nullopt;
      }
      execute(way.code[i], forms);
      continue;
    }
    if (at_call) {
      return std::nullopt;
    }
    at_call = forms;
    for (std::size_t reg = 0; reg < general_registers; ++reg) {
      if ((kept >> reg & 1U) == 0 && reg != static_cast<std::size_t>(Register::rsp)) {
        forms.at(reg).reset();
      }
    }
  }
  return at_call ? std::optional(AroundCall{*at_call, forms}) : std::nullopt;
}

bool is_unchanged(const RegisterForms& forms, std::size_t reg) { return forms.at(reg) == Linear::of(reg); }

/// True if the registers of `asked` have the same values at the call in each iteration.
bool calls_alike(const AroundCall& around, std::uint16_t asked) {
  for (std::size_t reg = 0; reg < general_registers; ++reg) {
    if ((asked >> reg & 1U) == 0) {
      continue;
    }
    const std::optional<Linear>& form = around.at_call.at(reg);
    for (std::size_t in = 0; in < general_registers; ++in) {
      if (!form || (form->factor.at(in) != 0 && !is_unchanged(around.behind, in))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

std::optional<RegisterForms> LoopAnatomy::around_call(std::uint32_t loop, std::uint64_t behind, std::uint16_t kept,
                                                      std::uint16_t asked) {
  const Instruction* const call = flow_.ending_at(behind);
  const bool has_inner = std::any_of(nest_.loops.begin(), nest_.loops.end(),
                                     [loop](const NaturalLoop& inner) { return inner.parent == loop; });
  if (call == nullptr || call->flow != Flow::call || has_inner || ways(loop).empty()) {
    return std::nullopt;
  }
  std::optional<AroundCall> around;
  for (const Way& way : ways(loop)) {
    const auto here = along(flow_, way, *call, kept);
    if (!here) {
      return std::nullopt;
    }
    if (around) {
      meet(around->at_call, here->at_call);
      meet(around->behind, here->behind);
    }
    around = around ? around : here;
  }
  return around && calls_alike(*around, asked) ? std::optional(around->behind) : std::nullopt;
}

Waiting LoopAnatomy::waits_at(std::uint32_t loop, std::uint64_t address) {
  Waiting most = Waiting::no;
  address = begin_of(address);
  for (const Way& way : ways(loop)) {
    if (std::find(way.addresses.begin(), way.addresses.end(), address) != way.addresses.end()) {
      most = std::max(most, waits(way.code, way.decisions));
    }
  }
  return most;
}

std::optional<LoadedRegister> LoopAnatomy::loaded_at(std::uint32_t loop, std::uint64_t address) {
  std::optional<LoadedRegister> result;
  address = begin_of(address);
  for (const Way& way : ways(loop)) {
    const auto at = std::find(way.addresses.begin(), way.addresses.end(), address);
    if (at == way.addresses.end()) {
      continue;
    }
    const auto loaded = loaded_register(way.code, static_cast<std::size_t>(at - way.addresses.begin()));
    if (!loaded || (result && result->reg != loaded->reg)) {
      return std::nullopt;
    }
    result = loaded;
  }
  return result;
}

}  // namespace crosstalk::symbolizer
