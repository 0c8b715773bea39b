// SPDX-License-Identifier: Apache-2.0
// The program's own function in which a thread began, from the outer end of its call stacks. The function given to
// pthread_create comes second, because std::thread, OpenMP and most languages pass one of their own. For threads
// without samples it is the only source.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/program/program_view.h"
#include "attribution/samples/sample_digest.h"

namespace crosstalk::attribution {

class StartRoutines {
 public:
  explicit StartRoutines(const ProgramView& view) : view_(view) {}
  /// Requests some stacks of each thread. Uses only samples that opened watches: no other rows are kept.
  void want(std::span<const profile::WatchRow> watches, StackTable& stacks);
  /// Names the start routines of threads whose stacks reach down to their first frames, and of threads that were
  /// created to begin in the program's own code.
  void name(std::vector<ThreadSummary>& threads, const StackTable& stacks) const;
  /// The function given to pthread_create for a thread, if it is the program's own; empty: it is not, or not known.
  [[nodiscard]] std::string given(std::uint32_t thread) const;
  /// The same for all threads with CPU time and no sample, without processes' first threads: "work()", that of most
  /// threads first. Empty if it is not known for one of them.
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

/// The program's own places that created threads, "spawn() at a.cpp:40", the most frequent first.
[[nodiscard]] std::vector<std::string> creation_places(std::span<const profile::ThreadCreationRow> creations,
                                                       const ProgramView& view, const StackTable& stacks);

}  // namespace crosstalk::attribution
