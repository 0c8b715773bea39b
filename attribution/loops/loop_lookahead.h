// SPDX-License-Identifier: Apache-2.0
// The instructions of loops' iterations, from lookaheads: the code that threads were to execute next at some samples,
// interpreted ahead (collectors/access/lookahead.h).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attribution/loops/loop_progress.h"
#include "attribution/model/model.h"
#include "attribution/program/program_view.h"
#include "symbolizer/cfg/instructions.h"
#include "symbolizer/loops/instruction_work.h"

namespace crosstalk::attribution {

/// Whole iterations of one loop in one lookahead, and their work: of the loop itself, its inner loops, and called
/// functions.
struct LookaheadIterations {
  double iterations = 0;
  std::array<double, symbolizer::work_kinds> work{};
};

/// The results of all lookaheads for a loop.
struct LoopLookahead {
  std::vector<LookaheadIterations> lookaheads;
  std::uint64_t begun = 0;                             // lookaheads from samples in the loop
  std::uint64_t cut = 0;                               // of them, those that ended within an iteration
  std::array<bool, symbolizer::work_kinds> unfixed{};  // an instruction's amount is not fixed by its code
};

/// Amount of one kind in an iteration, with its 95 % interval: a ratio estimate over lookaheads, with Student's t.
/// Events rarer than once in all followed iterations may be missing: the interval allows for that, too. nullopt, with a
/// reason, for too few lookaheads, or too many that were cut, which are the longer iterations.
struct LookaheadAmount {
  std::optional<double> mean;
  Interval ci95;
  std::uint64_t lookaheads = 0;
  std::string unknown;
};
[[nodiscard]] LookaheadAmount lookahead_amount(const LoopLookahead& loop, std::size_t kind);

/// Replays lookaheads on the program's code.
class LookaheadReplay {
 public:
  explicit LookaheadReplay(const ProgramView& view) : view_(view) {}
  void add(const profile::LookaheadRow& lookahead);
  [[nodiscard]] const std::map<LoopPlace, LoopLookahead>& loops() const { return loops_; }

 private:
  /// An instruction.
  struct Fact {
    ModulePlace place;
    symbolizer::Flow flow = symbolizer::Flow::next;
    symbolizer::LoopAnatomy* anatomy = nullptr;        // of its function
    std::uint32_t loop = symbolizer::Loop::no_parent;  // the innermost that holds it
    bool heads = false;                                // it is that loop's header
    symbolizer::Work work;
  };
  using Facts = std::vector<Fact>;
  struct Line {  // straight
    ModulePlace begin;
    std::uint64_t bytes = 0;
    bool operator==(const Line&) const = default;
  };
  struct LineHash {
    std::size_t operator()(const Line& line) const noexcept {
      return ModulePlaceHash{}(line.begin) ^ spread(line.bytes);
    }
  };
  class Tally;
  void count_begun(ModulePlace begin, bool cut);
  [[nodiscard]] std::shared_ptr<const Facts> facts_of(const Line& line, bool with_last);
  [[nodiscard]] Facts read_facts(const Line& line, bool with_last) const;
  void file(ModulePlace head, symbolizer::LoopAnatomy& anatomy, std::uint32_t outermost, const Tally& tally);

  const ProgramView& view_;
  std::map<LoopPlace, LoopLookahead> loops_;
  std::unordered_map<Line, std::shared_ptr<const Facts>, LineHash> known_[2];  // without and with the last instruction
};

}  // namespace crosstalk::attribution
