// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/loop_lookahead.h"

#include <algorithm>
#include <cmath>

#include "models/quantiles.h"
#include "profile/branch_trace.h"

namespace crosstalk::attribution {
namespace {

using symbolizer::Flow;
using symbolizer::Loop;
using symbolizer::work_kinds;

constexpr std::size_t least_lookaheads = 8;
constexpr double most_cut = 0.05;  // of lookaheads; each has a dozen iterations and more, of which one is cut

std::array<std::optional<double>, work_kinds> amounts_of(const symbolizer::Work& work) {
  return {work.instructions, work.loads, work.stores, work.bytes, work.flops};
}

}  // namespace

LookaheadAmount lookahead_amount(const LoopLookahead& loop, std::size_t kind) {
  LookaheadAmount amount;
  if (loop.unfixed.at(kind)) {
    amount.unknown = "an instruction's amount depends on its data";
    return amount;
  }
  if (static_cast<double>(loop.cut) > most_cut * static_cast<double>(loop.begun)) {
    amount.unknown = "too many of them cannot be followed to their end";
    return amount;
  }
  if (loop.lookaheads.size() < least_lookaheads) {
    amount.unknown = "too few of them were followed";
    return amount;
  }
  double iterations = 0;
  double work = 0;
  for (const LookaheadIterations& lookahead : loop.lookaheads) {
    iterations += lookahead.iterations, work += lookahead.work.at(kind);
  }
  const double mean = work / iterations;
  double squares = 0;
  for (const LookaheadIterations& lookahead : loop.lookaheads) {
    const double residual = lookahead.work.at(kind) - mean * lookahead.iterations;
    squares += residual * residual;
  }
  const auto n = static_cast<double>(loop.lookaheads.size());
  const double half = models::student_95(n - 1) * std::sqrt(squares * n / (n - 1)) / iterations;
  // A way with a frequency of 3 / iterations or more would have been seen with 95 %. A rarer one is assumed to differ
  // by at most an iteration's work.
  const double unseen = 3 / iterations * mean;
  const double either = std::max(half, unseen);
  amount.mean = mean;
  amount.ci95 = {std::max(0.0, mean - either), mean + either};
  amount.lookaheads = loop.lookaheads.size();
  return amount;
}

/// The work of one lookahead since the first passage of its head, by loop of the head's function. Called functions'
/// work counts for the calling instruction.
class LookaheadReplay::Tally {
 public:
  Tally(ModulePlace head, const symbolizer::LoopAnatomy& anatomy)
      : head_(head), anatomy_(&anatomy), pending_(anatomy.loops()), whole_(anatomy.loops()) {}

  /// Notes a jump back to the head: its next execution begins an iteration.
  void arm() { armed_ = true; }

  void execute(const Fact& fact) {
    if (armed_ && fact.place == head_ && (!frame_ || *frame_ == depth_)) {
      pass();
    }
    if (frame_) {
      count(fact);
    }
  }
  /// Notes a taken transfer of control.
  void transfer(Flow flow) { depth_ += flow == Flow::call ? 1 : flow == Flow::stop ? -1 : 0; }

  /// The work of a loop of the head's function, in whole rounds from head to head.
  struct Share {
    double passages = 0;  // of its header
    std::array<double, work_kinds> work{};
    std::array<bool, work_kinds> unfixed{};
  };
  [[nodiscard]] const std::vector<Share>& shares() const { return whole_; }

 private:
  void pass() {
    if (frame_) {
      for (std::size_t i = 0; i < whole_.size(); ++i) {
        add(whole_[i], pending_[i]);
      }
    }
    std::fill(pending_.begin(), pending_.end(), Share{});
    frame_ = depth_;
  }
  static void add(Share& to, const Share& more) {
    to.passages += more.passages;
    for (std::size_t kind = 0; kind < work_kinds; ++kind) {
      to.work.at(kind) += more.work.at(kind);
      to.unfixed.at(kind) = to.unfixed.at(kind) || more.unfixed.at(kind);
    }
  }
  void count(const Fact& fact) {
    if (depth_ < *frame_ || (depth_ == *frame_ && fact.anatomy != anatomy_)) {
      current_ = Loop::no_parent;  // the function was left
    } else if (depth_ == *frame_) {
      current_ = fact.loop;
      if (fact.heads) {
        pending_[fact.loop].passages += 1;
      }
    }
    const auto amounts = amounts_of(fact.work);
    for (std::uint32_t loop = current_; loop < pending_.size(); loop = anatomy_->parent(loop)) {
      for (std::size_t kind = 0; kind < work_kinds; ++kind) {
        pending_[loop].work.at(kind) += amounts.at(kind).value_or(0);
        pending_[loop].unfixed.at(kind) = pending_[loop].unfixed.at(kind) || !amounts.at(kind);
      }
    }
  }

  ModulePlace head_;
  const symbolizer::LoopAnatomy* anatomy_;
  std::vector<Share> pending_, whole_;  // by loop; since the last passage of the head, and before it
  bool armed_ = false;
  int depth_ = 0;             // of calls, from the lookahead's begin
  std::optional<int> frame_;  // the head's
  std::uint32_t current_ = Loop::no_parent;
};

LookaheadReplay::Facts LookaheadReplay::read_facts(const Line& line, bool with_last) const {
  Facts facts;
  for (std::uint64_t offset = 0; offset < line.bytes || (with_last && offset == line.bytes);) {
    Fact fact;
    fact.place = {line.begin.file, line.begin.address + offset};
    const auto code = view_.code().bytes_at(fact.place);
    const auto instruction = symbolizer::decode(code, fact.place.address);
    const auto work = symbolizer::work_of(code);
    if (!instruction || !work) {
      return {};
    }
    fact.flow = instruction->flow;
    fact.work = *work;
    fact.anatomy = view_.code().loop_anatomy(fact.place);
    if (fact.anatomy != nullptr) {
      fact.loop = fact.anatomy->innermost(fact.place.address);
      fact.heads = fact.loop < fact.anatomy->loops() && fact.anatomy->header(fact.loop) == fact.place.address;
    }
    facts.push_back(fact);
    offset += instruction->bytes;
    if (offset > line.bytes && !(with_last && offset == line.bytes + instruction->bytes)) {
      return {};  // not as it was executed
    }
  }
  return facts;
}

std::shared_ptr<const LookaheadReplay::Facts> LookaheadReplay::facts_of(const Line& line, bool with_last) {
  auto& facts = known_[with_last ? 1 : 0][line];
  if (facts == nullptr) {
    facts = std::make_shared<const Facts>(read_facts(line, with_last));
  }
  return facts;
}

void LookaheadReplay::count_begun(ModulePlace begin, bool cut) {
  symbolizer::LoopAnatomy* anatomy = view_.code().loop_anatomy(begin);
  if (anatomy == nullptr) {
    return;
  }
  for (std::uint32_t loop = anatomy->innermost(begin.address); loop < anatomy->loops(); loop = anatomy->parent(loop)) {
    LoopLookahead& lookaheads = loops_[{begin.file, anatomy->header(loop)}];
    ++lookaheads.begun;
    lookaheads.cut += cut ? 1 : 0;
  }
}

/// Adds loops from `outermost` inward: the lookahead ended at a head in it, so that all visits of its inner loops are
/// whole.
void LookaheadReplay::file(ModulePlace head, symbolizer::LoopAnatomy& anatomy, std::uint32_t outermost,
                           const Tally& tally) {
  for (std::uint32_t loop = 0; loop < anatomy.loops(); ++loop) {
    std::uint32_t around = loop;
    while (around < anatomy.loops() && around != outermost) {
      around = anatomy.parent(around);
    }
    const Tally::Share& share = tally.shares()[loop];
    if (around != outermost || share.passages == 0) {
      continue;
    }
    LoopLookahead& lookaheads = loops_[{head.file, anatomy.header(loop)}];
    lookaheads.lookaheads.push_back({share.passages, share.work});
    for (std::size_t kind = 0; kind < work_kinds; ++kind) {
      lookaheads.unfixed.at(kind) = lookaheads.unfixed.at(kind) || share.unfixed.at(kind);
    }
  }
}

void LookaheadReplay::add(const profile::LookaheadRow& lookahead) {
  const auto lines = profile::unpack_branch_trace(lookahead.branches, lookahead.begin);
  if (!view_.knows(lookahead.thread) || !lines) {
    return;
  }
  const Moment moment = view_.moment(lookahead.thread, lookahead.time_ns);
  if (const auto begin = view_.spaces().find(moment, lookahead.begin)) {
    count_begun(*begin, lookahead.end != profile::LookaheadEnd::whole);
  }
  const auto head = lookahead.head != 0 ? view_.spaces().find(moment, lookahead.head) : std::nullopt;
  const auto outermost = head ? innermost_loop(view_.code(), *head) : std::nullopt;
  if (!outermost) {
    return;
  }
  Tally tally(*head, *outermost->anatomy);
  for (std::size_t i = 0; i < lines->size(); ++i) {
    const profile::Straight& straight = (*lines)[i];
    const bool transfers = i + 1 < lines->size();
    const auto begin = view_.spaces().find(moment, straight.begin);
    const auto facts = begin ? facts_of({*begin, straight.last - straight.begin}, transfers) : nullptr;
    if (facts == nullptr || (facts->empty() && (transfers || straight.last != straight.begin))) {
      break;  // earlier iterations are valid
    }
    if (i > 0 && straight.begin == lookahead.head) {
      tally.arm();
    }
    for (const Fact& fact : *facts) {
      tally.execute(fact);
    }
    if (transfers) {
      tally.transfer(facts->back().flow);
    } else if (lookahead.end == profile::LookaheadEnd::whole) {
      Fact last;  // the head's, once more: it ends the last iteration
      last.place = *head;
      tally.execute(last);
    }
  }
  file(*head, *outermost->anatomy, outermost->index, tally);
}

}  // namespace crosstalk::attribution
