// SPDX-License-Identifier: Apache-2.0
#include "symbolizer/loops/natural_loops.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace crosstalk::symbolizer {
namespace {

constexpr std::uint32_t none = UINT32_MAX;
constexpr std::uint64_t most_steps = 50'000'000;  // hostile graphs are quadratic or worse

using Blocks = std::vector<std::uint32_t>;

std::vector<Blocks> predecessors_of(const ControlFlow& flow) {
  std::vector<Blocks> predecessors(flow.blocks.size());
  for (std::uint32_t i = 0; i < flow.blocks.size(); ++i) {
    for (const std::uint32_t successor : flow.blocks[i].successors) {
      predecessors[successor].push_back(i);
    }
  }
  return predecessors;
}

/// Blocks in post-order of a depth-first walk from the entries. An entry reachable from an earlier entry is no root.
Blocks post_order(const ControlFlow& flow, std::vector<bool>& is_root) {
  Blocks order;
  std::vector<bool> seen(flow.blocks.size(), false);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> stack;  // block, next successor
  for (const std::uint32_t entry : flow.entries) {
    if (seen[entry]) {
      continue;
    }
    is_root[entry] = true;
    seen[entry] = true;
    stack.emplace_back(entry, 0);
    while (!stack.empty()) {
      const std::uint32_t block = stack.back().first;
      const auto& successors = flow.blocks[block].successors;
      if (stack.back().second == successors.size()) {
        order.push_back(block);
        stack.pop_back();
        continue;
      }
      const std::uint32_t next = successors[stack.back().second++];
      if (!seen[next]) {
        seen[next] = true;
        stack.emplace_back(next, 0);
      }
    }
  }
  return order;
}

/// The dominator computation over post-order numbers; the virtual root has the highest number.
class Dominators {
 public:
  Dominators(const ControlFlow& flow, const std::vector<Blocks>& predecessors)
      : predecessors_(predecessors),
        is_root_(flow.blocks.size(), false),
        order_(post_order(flow, is_root_)),
        number_(flow.blocks.size(), none),
        root_(static_cast<std::uint32_t>(order_.size())),
        dominator_(order_.size() + 1, none) {
    for (std::uint32_t i = 0; i < order_.size(); ++i) {
      number_[order_[i]] = i;
    }
    dominator_[root_] = root_;
  }

  /// False if it gave up.
  bool compute() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (std::uint32_t i = root_; i-- > 0;) {
        const std::uint32_t found = meet_of_predecessors(order_[i]);
        if (steps_ > most_steps) {
          return false;
        }
        if (found != dominator_[i]) {
          dominator_[i] = found;
          changed = true;
        }
      }
    }
    return true;
  }

  [[nodiscard]] std::vector<std::uint32_t> by_block() const {
    std::vector<std::uint32_t> result(number_.size(), none);
    for (std::uint32_t i = 0; i < root_; ++i) {
      result[order_[i]] = dominator_[i] == root_ || dominator_[i] == none ? none : order_[dominator_[i]];
    }
    return result;
  }

 private:
  std::uint32_t meet_of_predecessors(std::uint32_t block) {
    std::uint32_t found = is_root_[block] ? root_ : none;
    for (const std::uint32_t predecessor : predecessors_[block]) {
      const std::uint32_t number = number_[predecessor];
      if (number == none || dominator_[number] == none) {
        continue;  // not reached, or not yet computed
      }
      found = found == none ? number : meet(number, found);
    }
    return found;
  }

  std::uint32_t meet(std::uint32_t a, std::uint32_t b) {
    while (a != b && ++steps_ <= most_steps) {
      (a < b ? a : b) = dominator_[std::min(a, b)];
    }
    return std::max(a, b);
  }

  const std::vector<Blocks>& predecessors_;
  std::vector<bool> is_root_;
  Blocks order_;
  std::vector<std::uint32_t> number_;  // by block
  std::uint32_t root_;
  std::vector<std::uint32_t> dominator_;  // by number
  std::uint64_t steps_ = 0;
};

/// Numbers blocks so that one dominates another exactly when its interval holds the other's begin.
class DominatorTree {
 public:
  explicit DominatorTree(const std::vector<std::uint32_t>& dominators)
      : begin_(dominators.size(), none), end_(dominators.size(), none) {
    std::vector<Blocks> children(dominators.size());
    for (std::uint32_t i = 0; i < dominators.size(); ++i) {
      if (dominators[i] != none) {
        children[dominators[i]].push_back(i);
      }
    }
    std::uint32_t clock = 0;
    std::vector<std::pair<std::uint32_t, std::size_t>> stack;
    for (std::uint32_t root = 0; root < dominators.size(); ++root) {
      if (dominators[root] != none) {
        continue;
      }
      stack.emplace_back(root, 0);
      begin_[root] = clock++;
      while (!stack.empty()) {
        const std::uint32_t block = stack.back().first;
        if (stack.back().second == children[block].size()) {
          end_[block] = clock;
          stack.pop_back();
          continue;
        }
        const std::uint32_t child = children[block][stack.back().second++];
        begin_[child] = clock++;
        stack.emplace_back(child, 0);
      }
    }
  }
  [[nodiscard]] bool dominates(std::uint32_t a, std::uint32_t b) const {
    return begin_[a] <= begin_[b] && begin_[b] < end_[a];
  }

 private:
  Blocks begin_, end_;
};

/// Adds the blocks that reach the latches without passing the header. False if the budget is spent.
bool fill_body(NaturalLoop& loop, const std::vector<Blocks>& predecessors, Blocks& mark, std::uint32_t id,
               std::uint64_t& steps) {
  Blocks work;
  mark[loop.header] = id;
  loop.blocks.push_back(loop.header);
  const auto add = [&](std::uint32_t block) {
    if (mark[block] != id) {
      mark[block] = id;
      loop.blocks.push_back(block);
      work.push_back(block);
    }
  };
  std::for_each(loop.latches.begin(), loop.latches.end(), add);
  while (!work.empty()) {
    const std::uint32_t block = work.back();
    work.pop_back();
    steps += predecessors[block].size() + 1;
    if (steps > most_steps) {
      return false;
    }
    std::for_each(predecessors[block].begin(), predecessors[block].end(), add);
  }
  std::sort(loop.blocks.begin(), loop.blocks.end());
  return true;
}

void nest(LoopNest& result) {
  // A loop is larger than those inside it: from large to small, each loop finds its parent in place.
  std::stable_sort(result.loops.begin(), result.loops.end(),
                   [](const NaturalLoop& a, const NaturalLoop& b) { return a.blocks.size() > b.blocks.size(); });
  for (std::uint32_t i = 0; i < result.loops.size(); ++i) {
    NaturalLoop& loop = result.loops[i];
    loop.parent = result.innermost[loop.header];
    loop.depth = loop.parent == none ? 1 : result.loops[loop.parent].depth + 1;
    for (const std::uint32_t block : loop.blocks) {
      result.innermost[block] = i;
    }
  }
}

}  // namespace

LoopNest natural_loops(const ControlFlow& flow) {
  LoopNest result;
  result.innermost.assign(flow.blocks.size(), none);
  const auto predecessors = predecessors_of(flow);
  Dominators dominators(flow, predecessors);
  if (!dominators.compute()) {
    return result;
  }
  const DominatorTree tree(dominators.by_block());
  std::map<std::uint32_t, Blocks> latches;  // by header
  for (std::uint32_t i = 0; i < flow.blocks.size(); ++i) {
    for (const std::uint32_t successor : flow.blocks[i].successors) {
      if (tree.dominates(successor, i)) {
        latches[successor].push_back(i);
      }
    }
  }
  Blocks mark(flow.blocks.size(), none);
  std::uint64_t steps = 0;
  for (auto& [header, sources] : latches) {
    NaturalLoop loop;
    loop.header = header;
    loop.latches = std::move(sources);
    if (!fill_body(loop, predecessors, mark, static_cast<std::uint32_t>(result.loops.size()), steps)) {
      result.loops.clear();
      return result;
    }
    result.loops.push_back(std::move(loop));
  }
  nest(result);
  return result;
}

}  // namespace crosstalk::symbolizer
