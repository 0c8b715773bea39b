// SPDX-License-Identifier: Apache-2.0
// The program's own functions for which time in the kernel, in libraries and in a library's templates is spent: a user
// can change the calls, not the called code.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "attribution/loops/code_time.h"
#include "attribution/program/program_view.h"
#include "profile/reader.h"

namespace crosstalk::attribution {

/// Takes all samples and keeps some of those in the kernel or in a library's code with recorded calls, so that a long
/// recording takes no more memory and time than a short one.
class Callers {
 public:
  explicit Callers(const ProgramView& view) : view_(view) {}
  void add(const profile::SampleRow& sample);
  /// Requests the stacks that it needs; unwind them before fill().
  void want(StackTable& stacks) const;
  /// Reads the chains of calls that perf recorded.
  [[nodiscard]] Result<void> read_chains(const profile::ProfileReader& profile);
  void fill(const StackTable& stacks, CodeTime& time) const;

 private:
  struct Sample {
    ThreadId thread;
    std::uint64_t time_ns = 0, ip = 0;  // ip: as in CodeTotal
    StackId stack;
    profile::CallChainId chain;
    double ns = 0;
    bool in_kernel = false, in_library = false;
  };
  [[nodiscard]] bool is_in_library(const Sample& sample, Moment moment);

  const ProgramView& view_;
  std::vector<Sample> kept_;
  std::uint64_t one_in_ = 1, seen_ = 0;
  std::unordered_map<ModulePlace, bool, ModulePlaceHash> library_code_;
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> chains_;
};

}  // namespace crosstalk::attribution
