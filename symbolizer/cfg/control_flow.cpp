// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/cfg/control_flow.h"

#include <algorithm>
#include <unordered_map>

#include "symbolizer/cfg/jump_tables.h"

namespace crosstalk::symbolizer {
namespace {

constexpr std::size_t table_look_back = 16;

/// Decodes a function and collects the parts of its graph. Positions are offsets from range.begin.
class Explorer {
 public:
  Explorer(AddressRange range, std::span<const std::uint8_t> code, const ReadBytes& read,
           const NeverReturns& never_returns)
      : range_(range),
        code_(code),
        read_(read),
        never_returns_(never_returns),
        at_(code.size(), none),
        covered_(code.size(), false) {}

  void explore() {
    visit(0);
    run();
    entries_.push_back(range_.begin);
    while (read_tables()) {
      run();
    }
    sweep_gaps();
  }
  [[nodiscard]] ControlFlow graph();

 private:
  static constexpr std::uint32_t none = UINT32_MAX;

  [[nodiscard]] std::uint64_t offset(std::uint64_t address) const { return address - range_.begin; }
  void visit(std::uint64_t position) { work_.push_back(position); }
  void run();
  void follow(std::uint64_t position);
  void lead_to(std::uint64_t target);
  bool read_tables();
  [[nodiscard]] std::vector<Instruction> run_up_to(std::uint64_t jump) const;
  void sweep_gaps();
  void add_successors(ControlFlow& flow, Block& block, const std::vector<std::uint64_t>& gaps) const;

  AddressRange range_;
  std::span<const std::uint8_t> code_;
  const ReadBytes& read_;
  const NeverReturns& never_returns_;
  std::vector<Instruction> found_;
  std::vector<std::uint32_t> at_;  // by offset: index into found_ of the instruction that begins there
  std::vector<bool> covered_;      // by offset: inside some instruction
  std::vector<std::uint64_t> work_;
  std::vector<std::uint64_t> leaders_;                                           // addresses that begin a block
  std::vector<std::uint64_t> unread_jumps_;                                      // indirect, not yet looked at
  std::unordered_map<std::uint64_t, std::vector<std::uint64_t>> table_targets_;  // by address of the jump
  std::vector<std::uint64_t> entries_;
  std::vector<std::uint64_t> gap_entries_;
};

void Explorer::run() {
  while (!work_.empty()) {
    const std::uint64_t position = work_.back();
    work_.pop_back();
    follow(position);
  }
}

void Explorer::lead_to(std::uint64_t target) {
  if (range_.contains(target)) {
    leaders_.push_back(target);
    visit(offset(target));
  }
}

/// Decodes straight on from `position` until the flow ends, meets decoded code, or runs into the middle of an
/// instruction.
void Explorer::follow(std::uint64_t position) {
  while (position < code_.size() && at_[position] == none && !covered_[position]) {
    auto instruction = decode(code_.subspan(position), range_.begin + position);
    if (!instruction || position + instruction->bytes > code_.size()) {
      return;
    }
    if (instruction->flow == Flow::call && instruction->target != 0 && never_returns_(instruction->target)) {
      instruction->flow = Flow::stop;
    }
    at_[position] = static_cast<std::uint32_t>(found_.size());
    std::fill_n(covered_.begin() + static_cast<std::ptrdiff_t>(position), instruction->bytes, true);
    found_.push_back(*instruction);
    if (instruction->flow == Flow::branch || instruction->flow == Flow::jump) {
      lead_to(instruction->target);
    }
    if (instruction->flow == Flow::branch) {
      leaders_.push_back(instruction->end());
    }
    if (instruction->flow == Flow::indirect_jump) {
      unread_jumps_.push_back(instruction->address);
    }
    if (instruction->flow == Flow::jump || instruction->flow == Flow::indirect_jump ||
        instruction->flow == Flow::stop) {
      return;
    }
    position += instruction->bytes;
  }
}

/// The last few decoded instructions before `jump` without gaps, and the one at `jump`.
std::vector<Instruction> Explorer::run_up_to(std::uint64_t jump) const {
  std::vector<Instruction> before;
  std::uint64_t end = offset(jump);
  before.push_back(found_[at_[end]]);
  while (before.size() < table_look_back && end > 0) {
    std::uint64_t begin = end - 1;
    while (begin > 0 && end - begin < 15 && at_[begin] == none) {
      --begin;
    }
    if (at_[begin] == none || found_[at_[begin]].end() != range_.begin + end) {
      break;
    }
    before.push_back(found_[at_[begin]]);
    end = begin;
  }
  std::reverse(before.begin(), before.end());
  return before;
}

/// Reads the tables of the indirect jumps found since the last call; true if that found code to follow.
bool Explorer::read_tables() {
  std::vector<std::uint64_t> jumps;
  jumps.swap(unread_jumps_);
  for (const std::uint64_t jump : jumps) {
    auto targets = jump_table_targets(run_up_to(jump), range_, read_);
    for (const std::uint64_t target : targets) {
      lead_to(target);
    }
    table_targets_.emplace(jump, std::move(targets));
  }
  return !work_.empty();
}

void Explorer::sweep_gaps() {
  for (std::uint64_t position = 0; position < code_.size();) {
    if (covered_[position]) {
      ++position;
      continue;
    }
    const auto instruction = decode(code_.subspan(position), range_.begin + position);
    if (!instruction || instruction->padding) {
      position += instruction ? instruction->bytes : 1;
      continue;
    }
    gap_entries_.push_back(range_.begin + position);
    leaders_.push_back(range_.begin + position);
    visit(position);
    do {
      run();
    } while (read_tables());
    position += covered_[position] ? 0 : 1;
  }
}

void Explorer::add_successors(ControlFlow& flow, Block& block, const std::vector<std::uint64_t>& gaps) const {
  const auto link = [&](std::uint64_t address) {
    const auto found = std::lower_bound(flow.blocks.begin(), flow.blocks.end(), address,
                                        [](const Block& b, std::uint64_t a) { return b.begin < a; });
    if (found != flow.blocks.end() && found->begin == address) {
      block.successors.push_back(static_cast<std::uint32_t>(found - flow.blocks.begin()));
    }
  };
  const Instruction& last = flow.instructions[block.last];
  if (last.flow == Flow::branch || last.flow == Flow::jump) {
    link(last.target);
  }
  if (last.flow == Flow::branch || last.flow == Flow::next || last.flow == Flow::call) {
    link(last.end());
  }
  if (last.flow == Flow::indirect_jump) {
    const auto known = table_targets_.find(last.address);
    const bool understood = known != table_targets_.end() && !known->second.empty();
    std::for_each(understood ? known->second.begin() : gaps.begin(), understood ? known->second.end() : gaps.end(),
                  link);
  }
  std::sort(block.successors.begin(), block.successors.end());
  block.successors.erase(std::unique(block.successors.begin(), block.successors.end()), block.successors.end());
}

ControlFlow Explorer::graph() {
  ControlFlow flow;
  flow.range = range_;
  std::sort(found_.begin(), found_.end(),
            [](const Instruction& a, const Instruction& b) { return a.address < b.address; });
  flow.instructions = std::move(found_);
  std::sort(leaders_.begin(), leaders_.end());
  for (std::uint32_t i = 0; i < flow.instructions.size(); ++i) {
    const Instruction& instruction = flow.instructions[i];
    const bool goes_on = i > 0 && flow.blocks.back().end == instruction.address &&
                         (flow.instructions[i - 1].flow == Flow::next || flow.instructions[i - 1].flow == Flow::call) &&
                         !std::binary_search(leaders_.begin(), leaders_.end(), instruction.address);
    if (!goes_on) {
      flow.blocks.push_back({instruction.address, 0, i, i, {}});
    }
    flow.blocks.back().end = instruction.end();
    flow.blocks.back().last = i;
  }
  // Many jumps into many gaps would take quadratic time, and no compiler emits them.
  constexpr std::size_t most_gaps = 4096;
  const std::vector<std::uint64_t> gaps =
      gap_entries_.size() <= most_gaps ? gap_entries_ : std::vector<std::uint64_t>{};
  for (Block& block : flow.blocks) {
    add_successors(flow, block, gaps);
  }
  entries_.insert(entries_.end(), gap_entries_.begin(), gap_entries_.end());
  for (const std::uint64_t entry : entries_) {
    const auto found = std::lower_bound(flow.blocks.begin(), flow.blocks.end(), entry,
                                        [](const Block& b, std::uint64_t a) { return b.begin < a; });
    if (found != flow.blocks.end() && found->begin == entry) {
      flow.entries.push_back(static_cast<std::uint32_t>(found - flow.blocks.begin()));
    }
  }
  return flow;
}

}  // namespace

const Instruction* ControlFlow::holding(std::uint64_t address) const {
  const auto next = std::upper_bound(instructions.begin(), instructions.end(), address,
                                     [](std::uint64_t a, const Instruction& i) { return a < i.address; });
  return next != instructions.begin() && address < std::prev(next)->end() ? &*std::prev(next) : nullptr;
}

const Instruction* ControlFlow::ending_at(std::uint64_t address) const {
  const Instruction* found = address == 0 ? nullptr : holding(address - 1);
  return found != nullptr && found->end() == address ? found : nullptr;
}

std::optional<std::uint32_t> ControlFlow::block_at(std::uint64_t address) const {
  const auto next = std::upper_bound(blocks.begin(), blocks.end(), address,
                                     [](std::uint64_t a, const Block& block) { return a < block.begin; });
  const bool holds = next != blocks.begin() && address < std::prev(next)->end;
  return holds ? std::optional(static_cast<std::uint32_t>(std::prev(next) - blocks.begin())) : std::nullopt;
}

ControlFlow control_flow(AddressRange range, std::span<const std::uint8_t> code, const ReadBytes& read,
                         const NeverReturns& never_returns) {
  if (code.empty() || code.size() > largest_function) {
    return {range, {}, {}, {}};
  }
  Explorer explorer(range, code, read, never_returns);
  explorer.explore();
  return explorer.graph();
}

}  // namespace crosstalk::symbolizer
