// SPDX-License-Identifier: Apache-2.0
// The samples that have a stack. A recorder copies stacks of some samples, drawn by time; perf has a chain of calls for
// each or for none.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "attribution/program/program_view.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

class SampledStacks {
 public:
  struct Sample {
    ThreadId thread;
    StackId stack;  // 0: not known
    profile::CallChainId chain;
    bool in_kernel = false;
    std::uint64_t time_ns = 0, ip = 0;  // ip: as in CodeTotal
    std::uint64_t weight = 0;
  };

  /// `view` must outlive this.
  explicit SampledStacks(const ProgramView& view) : view_(view) {}
  /// Keeps the sample if it has a stack. `weight`: SampleDigest::weight_of().
  void add(const profile::SampleRow& sample, std::uint64_t weight);
  /// Requests the stacks; unwind them before samples().
  void want(StackTable& stacks) const;
  /// Enters the chains of calls that perf recorded into `stacks`. Errors are the reader's.
  [[nodiscard]] Result<void> read_chains(const profile::ProfileReader& profile, StackTable& stacks);
  /// In the order recorded.
  [[nodiscard]] std::span<const Sample> samples() const { return samples_; }

 private:
  const ProgramView& view_;
  std::vector<Sample> samples_;
};

}  // namespace crosstalk::attribution
