// SPDX-License-Identifier: Apache-2.0
// The rate of stores to a line, from probes of it with different gaps. Pure functions.
//
// A partner is active with the chance a; while it is, it stores within a gap g with the probability 1 - exp(-rate g).
// So a probe sees a change with p(g) = a (1 - exp(-rate g)): that a partner was active is known apart from the rate, if
// long gaps see no more than middling ones. If p is still in proportion to the longest gaps, there are either rare
// stores by active partners or frequent ones by partners that are seldom active, and the interval says so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace crosstalk::attribution {

struct ProbeOutcome {
  double gap_ns = 0;
  bool changed = false;
};

/// Outcomes of probes, counted by gap in steps of a quarter octave.
class ProbeOutcomes {
 public:
  void add(const ProbeOutcome& outcome);
  [[nodiscard]] double probes() const { return all_.probes; }
  [[nodiscard]] double hits() const { return all_.hits; }

  struct Bin {
    double probes = 0, hits = 0, gaps_ns = 0;  // gaps_ns: their sum
  };
  static constexpr std::size_t bins = 40;  // from 128 ns to 131 us, and all that is longer
  [[nodiscard]] const std::array<Bin, bins>& by_gap() const { return by_gap_; }

 private:
  std::array<Bin, bins> by_gap_{};
  Bin all_;
};

/// While a partner is active, the probability that it stores within a gap g is 1 - exp(-rate g). The victim stands
/// still and does not compete, so `rate` is not the program's own rate. The program and the processors decide if a
/// partner is active.
struct StoreRate {
  double active = 0;  // the chance that a partner is active, 0..1
  /// From the least to the most that any likely rate makes of it. How many of the probes saw a store by chance is not
  /// in it.
  double active_low = 0, active_high = 0;
  double rate = 0;                     // stores a nanosecond of one who is; 0: not known
  double rate_low = 0, rate_high = 0;  // its 95 % interval
  double detection = 1;                // of the probes to which a partner was active, the part that saw a store, 0..1
};

/// The most likely rate, from 10 ns to 1 ms between stores. A few outcomes tell it badly, and the interval says so;
/// without a change nothing is made up: a detection of 1.
[[nodiscard]] StoreRate store_rate(const ProbeOutcomes& outcomes);

/// The rates of stores to probed lines, each of a thread's probes of one line or, if these saw few stores, of all
/// probes at the same instruction.
struct ProbeRates {
  static constexpr std::uint32_t none = UINT32_MAX;
  std::vector<StoreRate> rates;
  std::vector<std::uint32_t> of_watch;  // index into `rates`; none: it is no probe that saw a store
};

}  // namespace crosstalk::attribution
