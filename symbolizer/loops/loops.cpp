// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/loops.h"

#include <algorithm>
#include <unordered_map>

#include "symbolizer/loops/natural_loops.h"

namespace crosstalk::symbolizer {
namespace {

/// An inline chain, outermost first.
using Scopes = std::vector<Frame>;

/// Inline chains of a function's instructions, requested once for each row.
class Chains {
 public:
  Chains(const ControlFlow& flow, const RowAt& row_at, const ChainAt& chain_at)
      : flow_(flow),
        row_at_(row_at),
        chain_at_(chain_at),
        rows_(flow.instructions.size(), nullptr),
        known_(flow.instructions.size(), false) {}

  /// Null if the instruction has no known line.
  const Scopes* at(std::uint32_t instruction) {
    const std::uint64_t address = flow_.instructions[instruction].address;
    if (!known_[instruction]) {
      known_[instruction] = true;
      rows_[instruction] = row_at_(address);
    }
    const void* row = rows_[instruction];
    if (row == nullptr) {
      return nullptr;
    }
    auto found = by_row_.find(row);
    if (found == by_row_.end()) {
      Scopes scopes = chain_at_(address);
      std::reverse(scopes.begin(), scopes.end());
      found = by_row_.emplace(row, std::move(scopes)).first;
    }
    return found->second.empty() ? nullptr : &found->second;
  }

 private:
  const ControlFlow& flow_;
  const RowAt& row_at_;
  const ChainAt& chain_at_;
  std::vector<const void*> rows_;  // by instruction
  std::vector<bool> known_;
  std::unordered_map<const void*, Scopes> by_row_;
};

/// The number of scopes that two chains share, from the outermost on. A scope is a function and the call that led to
/// it.
std::size_t shared_scopes(const Scopes& a, const Scopes& b) {
  const std::size_t limit = std::min(a.size(), b.size());
  std::size_t count = 0;
  while (count < limit && a[count].function == b[count].function &&
         (count == 0 || a[count - 1].source == b[count - 1].source)) {
    ++count;
  }
  return count;
}

template <class Visit>
void for_each_instruction(const ControlFlow& flow, const NaturalLoop& loop, Visit visit) {
  for (const std::uint32_t block : loop.blocks) {
    for (std::uint32_t i = flow.blocks[block].first; i <= flow.blocks[block].last; ++i) {
      visit(i);
    }
  }
}

/// The scope in which the source has the loop: a chain that begins with it, and its depth.
struct Home {
  const Scopes* scopes = nullptr;
  std::size_t depth = 0;  // 0: unknown
};

Home home_of(const ControlFlow& flow, const NaturalLoop& loop, Chains& chains) {
  Home home;
  for (const std::uint32_t latch : loop.latches) {
    const Scopes* scopes = chains.at(flow.blocks[latch].last);
    if (scopes == nullptr) {
      continue;
    }
    home.depth = home.scopes == nullptr ? scopes->size() : std::min(home.depth, shared_scopes(*home.scopes, *scopes));
    home.scopes = home.scopes == nullptr ? scopes : home.scopes;
  }
  if (home.scopes == nullptr) {
    return home;
  }
  std::size_t instructions = 0;
  std::vector<std::size_t> inside(home.depth + 1, 0);  // by number of scopes shared with the home's chain
  for_each_instruction(flow, loop, [&](std::uint32_t i) {
    if (const Scopes* scopes = chains.at(i)) {
      ++instructions;
      ++inside[std::min(home.depth, shared_scopes(*home.scopes, *scopes))];
    }
  });
  std::size_t within = inside[home.depth];
  while (home.depth > 1 && within * 2 < instructions) {
    --home.depth;
    within += inside[home.depth];
  }
  return home;
}

void set_lines(const ControlFlow& flow, const NaturalLoop& natural, Chains& chains, Loop& loop) {
  const Home home = home_of(flow, natural, chains);
  if (home.depth == 0) {
    return;
  }
  const std::size_t level = home.depth - 1;
  const std::string& file = (*home.scopes)[level].source.file;
  for_each_instruction(flow, natural, [&](std::uint32_t i) {
    const Scopes* scopes = chains.at(i);
    if (scopes == nullptr || shared_scopes(*home.scopes, *scopes) < home.depth) {
      return;
    }
    const SourceLine& source = (*scopes)[level].source;
    if (source.line == 0 || source.file != file) {
      return;
    }
    if (loop.begin.line == 0 || source.line < loop.begin.line) {
      loop.begin = source;
    }
    if (source.line > loop.end.line) {
      loop.end = source;
    }
  });
}

}  // namespace

FunctionLoops function_loops(const ControlFlow& flow, const RowAt& row_at, const ChainAt& chain_at) {
  FunctionLoops result;
  result.function_begin = flow.range.begin;
  const LoopNest nest = natural_loops(flow);
  Chains chains(flow, row_at, chain_at);
  for (const NaturalLoop& natural : nest.loops) {
    Loop loop;
    loop.parent = natural.parent;
    loop.depth = natural.depth;
    loop.header = flow.blocks[natural.header].begin;
    set_lines(flow, natural, chains, loop);
    result.loops.push_back(std::move(loop));
  }
  for (std::uint32_t i = 0; i < flow.blocks.size(); ++i) {
    const Block& block = flow.blocks[i];
    const std::uint32_t loop = nest.innermost[i];
    if (loop == Loop::no_parent) {
      continue;
    }
    if (!result.ranges.empty() && result.ranges.back().end == block.begin && result.ranges.back().loop == loop) {
      result.ranges.back().end = block.end;
    } else {
      result.ranges.push_back({block.begin, block.end, loop});
    }
  }
  return result;
}

std::optional<std::uint32_t> FunctionLoops::innermost(std::uint64_t address) const {
  const auto next = std::upper_bound(ranges.begin(), ranges.end(), address,
                                     [](std::uint64_t a, const Range& range) { return a < range.begin; });
  if (next == ranges.begin() || address >= std::prev(next)->end) {
    return std::nullopt;
  }
  return std::prev(next)->loop;
}

}  // namespace crosstalk::symbolizer
