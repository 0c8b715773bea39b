// SPDX-License-Identifier: Apache-2.0
// What brief watches were too short to see.
//
// Lines that nothing is known of are watched briefly, one in so many by chance for long. Where communication comes late
// (threads that meet on a line once in a while), most brief watches on it end before it, and count as if there were
// none. Two things say what they would have seen:
// - The long watches of the same stratum: what they saw late counts as often as there are watches for each of them
//   (Horvitz and Thompson). Right whatever the lines are, but where one watch in 32 is long, a few events carry all.
// - What came early, in the proportion in which the thread's long watches, wherever they were, saw late and early.
//   That takes lines that are not known for as busy as those that are: it errs to the low side where they are not. Each
//   line speaks once: the one by which threads wait for each other is watched most, and while they wait, it is late.
// Each stratum is served by the one that asks less of a single event.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "attribution/estimate/evidence.h"
#include "attribution/estimate/strata.h"

namespace crosstalk::attribution {

class Censoring {
 public:
  /// Long watches that were charged something, which a thread needs to show how late that comes; else all threads do.
  /// Of so many some are early, even where that is one in ten.
  static constexpr std::uint64_t least_shown = 32;

  /// To be told of every watch, in order, with what is charged for it: the next contributions.
  void add(const Evidence& evidence, std::span<const Contribution> charged);
  /// Makes up for what was too late to be seen. `contributions` are all that were told of.
  void weigh(std::span<Contribution> contributions, std::span<const Stratum> strata) const;
  /// For how many an event that was seen in a stratum may stand: >= 1. `stratum` is the index of `of`.
  [[nodiscard]] double most(std::uint32_t stratum, const Stratum& of) const;

 private:
  struct LineTiming {  // of the long watches on a line
    double early = 0, late = 0;
  };
  struct Timing {                               // of long watches
    std::map<std::uint64_t, LineTiming> lines;  // by address
    std::uint64_t watches = 0;                  // that have some cost: a store that only invalidates has none
    [[nodiscard]] double ratio() const;
  };
  struct Looks {  // the watches of a stratum, by weight of their samples
    double all = 0, lasting = 0;
  };
  struct Factors {  // for how many an event stands
    double early = 1, late = 1;
  };
  [[nodiscard]] double ratio(const Stratum& of) const;
  [[nodiscard]] Factors factors(std::uint32_t stratum, const Stratum& of) const;

  std::map<std::uint32_t, Looks> looks_;  // by stratum
  struct Timings {
    std::map<std::uint32_t, Timing> threads;
    Timing all;
  };
  ByUnit<Timings> timings_;
  std::vector<bool> late_;  // by contribution
};

}  // namespace crosstalk::attribution
