// SPDX-License-Identifier: Apache-2.0
// Limits the communication that no watch saw.
//
// Each watch that saw nothing of a pair or sort is evidence of its absence, as much as it would have seen: words are
// drawn at random, brief watches miss late communication, and a watch that other threads filled has decided nothing. If
// none of n watches that represent X seconds saw any, there is less than 3.69 X / n of it with 97.5 % confidence
// (intervals.h). Over several strata the limit is the greatest sum of which nothing is seen in any of them with a
// probability of 2.5 %; no stratum holds more than its time.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "attribution/estimate/censoring.h"
#include "attribution/estimate/evidence.h"
#include "attribution/estimate/unseen_limits.h"
#include "attribution/samples/strata.h"

namespace crosstalk::attribution {

/// The time of a stratum or of its part in a thread, and the number of its watches that would have seen communication.
struct WatchedPart {
  double ns = 0, watches = 0;
};
/// The most time of unseen communication in all parts together.
[[nodiscard]] double most_unseen_ns(std::vector<WatchedPart> parts);

/// The number of watches in each stratum that would have seen communication.
class Sight {
 public:
  /// Takes every watch; `decided`: other threads did not fill it before it could see anything.
  void add(const Evidence& evidence, bool decided);
  /// The limits for samples of `unit`. Absent `censoring`: brief watches see as much as long ones. `strata` are
  /// finished.
  [[nodiscard]] UnseenLimits limits(const Strata& strata, const Censoring* censoring, profile::WeightUnit unit) const;

 private:
  struct Words {
    double drawn = 0, probability = 0;  // how many, and the sum of the chances that they, and one other thread, had
    [[nodiscard]] double chance() const { return drawn > 0 ? probability / drawn : 0; }
  };
  struct Looks {
    double weight = 0, weight2 = 0;  // of decided watches' samples
    Words sampled, others;           // words: the sampled one shows true sharing, another one false sharing
    bool all_armed = true;           // every one of them had armed all threads
  };
  struct Effective {
    double of_true = 0, of_false = 0;  // watches
  };
  [[nodiscard]] static Effective effective(const Looks* looks, double most);

  std::map<std::uint32_t, Looks> looks_;  // by stratum
  // By stratum and thread. In strata of several threads, one thread's watches say nothing of another's.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Looks> of_thread_;
};

}  // namespace crosstalk::attribution
