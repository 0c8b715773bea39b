// SPDX-License-Identifier: Apache-2.0
// Without back edges a loop's body is a graph without cycles: least and most are its shortest and longest ways.
#include "symbolizer/loops/iteration_work.h"

#include <algorithm>
#include <map>
#include <vector>

#include "symbolizer/loops/instruction_work.h"

namespace crosstalk::symbolizer {
namespace {

using Amounts = std::array<std::optional<WorkRange>, work_kinds>;

Amounts amounts_of(const Work& work) {
  const std::array<std::optional<double>, work_kinds> each = {work.instructions, work.loads, work.stores, work.bytes,
                                                              work.flops};
  Amounts result;
  for (std::size_t i = 0; i < work_kinds; ++i) {
    if (each.at(i)) {
      result.at(i) = WorkRange{*each.at(i), *each.at(i)};
    }
  }
  return result;
}

Amounts nothing() { return amounts_of(Work{}); }

void add(Amounts& to, const Amounts& more) {
  for (std::size_t i = 0; i < work_kinds; ++i) {
    if (to.at(i) && more.at(i)) {
      to.at(i)->least += more.at(i)->least;
      to.at(i)->most += more.at(i)->most;
    } else {
      to.at(i).reset();
    }
  }
}

void choose(Amounts& to, const Amounts& other) {
  for (std::size_t i = 0; i < work_kinds; ++i) {
    if (to.at(i) && other.at(i)) {
      to.at(i)->least = std::min(to.at(i)->least, other.at(i)->least);
      to.at(i)->most = std::max(to.at(i)->most, other.at(i)->most);
    } else {
      to.at(i).reset();
    }
  }
}

class Paths {
 public:
  Paths(const ControlFlow& flow, const LoopNest& nest, std::uint32_t index, const ReadBytes& read)
      : flow_(flow), nest_(nest), index_(index), loop_(nest.loops[index]), read_(read) {}

  IterationWork measure();

 private:
  enum class Mark : std::uint8_t { open, done };
  [[nodiscard]] bool order_blocks();
  [[nodiscard]] std::vector<std::uint32_t> onward(std::uint32_t block) const;
  [[nodiscard]] bool is_back_edge(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] std::optional<Amounts> of_block(std::uint32_t block);

  const ControlFlow& flow_;
  const LoopNest& nest_;
  std::uint32_t index_;
  const NaturalLoop& loop_;
  const ReadBytes& read_;
  std::vector<std::uint32_t> order_;  // the header last
  std::string unknown_;
};

/// True for an edge to the header of a loop that holds both ends, this one or one inside it.
bool Paths::is_back_edge(std::uint32_t from, std::uint32_t to) const {
  for (std::uint32_t at = nest_.innermost[to]; at < nest_.loops.size(); at = nest_.loops[at].parent) {
    if (nest_.loops[at].header == to && nest_.loops[at].contains(from)) {
      return true;
    }
    if (at == index_) {
      break;
    }
  }
  return false;
}

std::vector<std::uint32_t> Paths::onward(std::uint32_t block) const {
  std::vector<std::uint32_t> next;
  for (const std::uint32_t successor : flow_.blocks[block].successors) {
    if (loop_.contains(successor) && !is_back_edge(block, successor)) {
      next.push_back(successor);
    }
  }
  return next;
}

/// Sorts blocks in post-order; false if there is a cycle that is no natural loop.
bool Paths::order_blocks() {
  std::map<std::uint32_t, Mark> marks{{loop_.header, Mark::open}};
  struct Step {
    std::uint32_t block;
    std::vector<std::uint32_t> next;
  };
  std::vector<Step> stack{{loop_.header, onward(loop_.header)}};
  while (!stack.empty()) {
    Step& step = stack.back();
    if (step.next.empty()) {
      marks[step.block] = Mark::done;
      order_.push_back(step.block);
      stack.pop_back();
      continue;
    }
    const std::uint32_t next = step.next.back();
    step.next.pop_back();
    const auto [known, fresh] = marks.try_emplace(next, Mark::open);
    if (fresh) {
      stack.push_back({next, onward(next)});
    } else if (known->second == Mark::open) {
      return false;
    }
  }
  return true;
}

std::optional<Amounts> Paths::of_block(std::uint32_t block) {
  Amounts sum = nothing();
  if (nest_.innermost[block] != index_) {
    return sum;
  }
  for (std::uint32_t i = flow_.blocks[block].first; i <= flow_.blocks[block].last; ++i) {
    const Instruction& instruction = flow_.instructions[i];
    const auto work = work_of(read_(instruction.address));
    if (instruction.flow == Flow::call || !work) {
      unknown_ = work ? "it calls functions" : "some of its code cannot be decoded";
      return std::nullopt;
    }
    add(sum, amounts_of(*work));
  }
  return sum;
}

IterationWork Paths::measure() {
  IterationWork result;
  if (!order_blocks()) {
    result.unknown = "its control flow is not that of a natural loop";
    return result;
  }
  std::map<std::uint32_t, Amounts> to_latch;  // from a block on, the block included
  for (const std::uint32_t block : order_) {
    const auto own = of_block(block);
    if (!own) {
      result.unknown = unknown_;
      return result;
    }
    const bool latch = std::find(loop_.latches.begin(), loop_.latches.end(), block) != loop_.latches.end();
    std::optional<Amounts> best = latch ? std::optional(nothing()) : std::nullopt;
    for (const std::uint32_t next : onward(block)) {
      const auto found = to_latch.find(next);
      if (found != to_latch.end()) {
        best ? choose(*best, found->second) : void(best = found->second);
      }
    }
    if (best) {
      add(*best, *own);
      to_latch.emplace(block, *best);
    }
  }
  const auto whole = to_latch.find(loop_.header);
  whole == to_latch.end() ? void(result.unknown = "its control flow is not understood")
                          : void(result.own = whole->second);
  return result;
}

}  // namespace

IterationWork iteration_work(const ControlFlow& flow, const LoopNest& nest, std::uint32_t index,
                             const ReadBytes& read) {
  return Paths(flow, nest, index, read).measure();
}

}  // namespace crosstalk::symbolizer
