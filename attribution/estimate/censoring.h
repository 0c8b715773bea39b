// SPDX-License-Identifier: Apache-2.0
// Compensates for communication that brief watches end too early to see.
//
// Lines without known users are watched briefly, and a random one in so many for long. If communication comes late
// (threads meet on a line once in a while), most brief watches on the line end before it, and count as if there were
// none. Two kinds of evidence give the missing part:
// - The long watches of the same stratum: what they saw late counts as often as there are watches for each of them
//   (Horvitz and Thompson). This is right for any lines, but if one watch in 32 is long, a few events carry all.
// - Early communication, multiplied by the ratio of late to early in the thread's long watches anywhere. This assumes
//   that lines without known users are as busy as others; if they are not, it errs to the low side. Each line counts
//   once: threads wait for each other on the most watched line, and while they wait, communication there is late.
// Each stratum uses the evidence that multiplies a single event less.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "attribution/estimate/evidence.h"
#include "attribution/samples/strata.h"

namespace crosstalk::attribution {

class Censoring {
 public:
  /// Long watches with charges that a thread needs to show how late communication comes; with fewer, all threads' are
  /// used. In so many watches, some communication is early even if only one in ten is.
  static constexpr std::uint64_t least_shown = 32;

  /// Takes every watch, in order, with its charges: the next contributions.
  void add(const Evidence& evidence, std::span<const Contribution> charged);
  /// Weighs up contributions for communication that came too late to be seen. `contributions` are all those given to
  /// add().
  void weigh(std::span<Contribution> contributions, std::span<const Stratum> strata) const;
  /// The most events that one event seen in a stratum may represent: >= 1. `stratum` is the index of `of`.
  [[nodiscard]] double most(std::uint32_t stratum, const Stratum& of) const;

 private:
  struct LineTiming {  // of the long watches on a line
    double early = 0, late = 0;
  };
  struct Timing {                               // of long watches
    std::map<std::uint64_t, LineTiming> lines;  // by address
    std::uint64_t watches = 0;                  // with some cost: a store that only invalidates has none
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
