// SPDX-License-Identifier: Apache-2.0
// The function of the program that a thread began in, from the outer end of its call stacks. What pthread_create was
// given comes second: std::thread, OpenMP and most languages pass a function of their own. For threads without samples
// there is nothing else.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "attribution/model.h"
#include "attribution/objects/program_view.h"
#include "attribution/timeline/sample_digest.h"

namespace crosstalk::attribution {

class StartRoutines {
 public:
  explicit StartRoutines(const ProgramView& view) : view_(view) {}
  /// Asks for some stacks of each thread. Only samples that opened watches are looked at: no other rows are kept.
  void want(std::span<const profile::WatchRow> watches, StackTable& stacks);
  /// Names the start routines of the threads whose stacks reach down to the thread's first frames, and of those that
  /// were made to begin in code of the program's own.
  void name(std::vector<ThreadSummary>& threads, const StackTable& stacks) const;
  /// What pthread_create was given for a thread, if that is the program's own function; empty: it is not, or not known.
  [[nodiscard]] std::string given(std::uint32_t thread) const;
  /// The same of all threads that used CPU time and have no sample, "work()", those of most threads first; processes'
  /// first threads apart. Empty where it is not known of one of them.
  [[nodiscard]] std::vector<std::string> given_to_unsampled(std::span<const ThreadTotal> totals) const;

 private:
  struct Candidate {
    StackId stack;
    Moment moment;
  };
  [[nodiscard]] std::string start_of(Moment moment, std::span<const std::uint64_t> stack) const;

  const ProgramView& view_;
  std::map<std::uint32_t, std::vector<Candidate>> candidates_;  // by thread
};

/// The program's own places where threads were made, "spawn() at a.cpp:40", those seen most often first.
[[nodiscard]] std::vector<std::string> creation_places(std::span<const profile::ThreadCreationRow> creations,
                                                       const ProgramView& view, const StackTable& stacks);

}  // namespace crosstalk::attribution
