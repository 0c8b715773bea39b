// SPDX-License-Identifier: Apache-2.0
// CPU time by call stack.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "attribution/model/stack_model.h"
#include "attribution/stacks/lenders.h"
#include "attribution/stacks/stack_inputs.h"
#include "attribution/stacks/stack_writer.h"

namespace crosstalk::attribution {

struct StackSum {
  std::uint64_t samples = 0, weight = 0;
};

/// A leaf in user mode, or in the kernel on behalf of it.
using TimeLeaf = std::pair<LeafPlace, bool>;

/// Time by stack.
class TimeStacks {
 public:
  TimeStacks(const StackInputs& inputs, StackWriter& writer)
      : inputs_(inputs), writer_(writer), lenders_(inputs.view) {}
  void read();
  [[nodiscard]] std::vector<TimeStack> finish(bool lend);
  [[nodiscard]] const Lenders& lenders() const { return lenders_; }

 private:
  struct Own {
    StackSum sum;
    CallerStack callers;
  };
  using OwnStacks = std::map<std::uint32_t, Own>;  // by the callers' number
  void put_leaf(const TimeLeaf& leaf, StackSum sum, bool lend);
  void put_lent(const TimeLeaf& leaf, const std::vector<std::uint32_t>& innermost, StackSum rest, bool lend);
  void put(const TimeLeaf& leaf, std::vector<std::uint32_t> places, CallersFrom from, StackSum sum) {
    if (sum.samples != 0 || sum.weight != 0) {
      rows_.push_back({leaf.first.thread, std::move(places), from, sum.samples, sum.weight});
    }
  }
  /// The place of the leaf, behind that of the kernel's function if it is there.
  [[nodiscard]] std::vector<std::uint32_t> innermost_of(const TimeLeaf& leaf);
  void put_unsampled();

  const StackInputs& inputs_;
  StackWriter& writer_;
  Lenders lenders_;
  std::map<TimeLeaf, OwnStacks> own_;
  std::vector<TimeStack> rows_;
};

/// CPU time of each thread that no sample stands for, ns: the time of all threads together without what samples
/// represent, to each by what it lacks.
[[nodiscard]] std::vector<std::uint64_t> unsampled_ns(std::span<const ThreadSummary> threads,
                                                      std::span<const ThreadTotal> totals);

}  // namespace crosstalk::attribution
