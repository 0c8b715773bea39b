// SPDX-License-Identifier: Apache-2.0
// Classifies time samples in loops by the instruction that they wait for. A timer interrupt arrives after the oldest
// unfinished instruction, and after those that finished with it: the instructions before it tell how the time was
// spent.
#pragma once

#include <map>
#include <unordered_map>

#include "attribution/loops/loop_progress.h"
#include "attribution/program/program_view.h"
#include "attribution/samples/sample_digest.h"
#include "symbolizer/loops/loop_body.h"

namespace crosstalk::attribution {

/// Seconds of samples in a loop and its inner loops, by what they wait for.
struct LoopStanding {
  double load = 0, store = 0, fpu = 0, loaded_fpu = 0, nothing = 0;
  [[nodiscard]] double total() const { return load + store + fpu + loaded_fpu + nothing; }
};

class LoopStandings {
 public:
  explicit LoopStandings(const ProgramView& view) : view_(view) {}
  void add(const CodeTotal& total);
  [[nodiscard]] const std::map<LoopPlace, LoopStanding>& loops() const { return loops_; }

 private:
  using ByAddress = std::unordered_map<std::uint64_t, symbolizer::WaitsFor>;
  [[nodiscard]] const ByAddress& standings(const CodeLoop& loop, std::uint32_t file);

  const ProgramView& view_;
  std::map<LoopPlace, ByAddress> known_;
  std::map<LoopPlace, LoopStanding> loops_;
};

/// The wait of a thread that is interrupted before instruction `at` of a way.
[[nodiscard]] symbolizer::WaitsFor stands_at(const symbolizer::Way& way, std::size_t at);

}  // namespace crosstalk::attribution
