// SPDX-License-Identifier: Apache-2.0
// The choice of a process's threads that a watch arms, as a sampling design. Pure functions.
//
// A watch sees nothing of a thread that is not armed. Up to some number (profile::most_armed) all threads are armed; of
// more:
// - If the bulletin board has named a partner (the line is suspected), that one is armed with certainty: the watch sees
//   all and represents itself.
// - Otherwise the armed ones are a simple random sample, without replacement, of the others. One thread is among them
//   with a probability of armed / others, one of several as chance() says. Nothing that decides if a sample is watched,
//   for how long and at which words depends on the draw, so the probabilities multiply.
// Arming may also fail, since two watches that open events in a process at the same time are in each other's way. Such
// a watch is no part of the design. Worse, it misleads: if it misses the thread that stored in between, it sees the two
// around it communicate. Its samples count as unwatched.
// A watch that armed a line's users represents 1 / that probability of such watches (Horvitz and Thompson).
#pragma once

#include <cstdint>
#include <span>

#include "profile/model.h"

namespace crosstalk::attribution {

struct Arming {
  std::uint32_t others = 0;  // threads that could have been armed, the sampled one apart
  std::uint32_t armed = 0;   // so many of them were, drawn by chance

  [[nodiscard]] bool complete() const { return armed >= others; }
  /// The probability that at least one of `wanted` of the others was armed.
  [[nodiscard]] double chance(std::uint32_t wanted) const;
};
[[nodiscard]] Arming arming_of(const profile::WatchRow& watch);

/// Tells watches that are evidence from those in which arming failed for threads that were to be armed. If it failed in
/// nearly all (a kernel that lets no process arm another's threads), all are: their processes join them a little later.
class ArmingFailures {
 public:
  explicit ArmingFailures(std::span<const profile::WatchRow> watches);
  /// True if the watch is no evidence.
  [[nodiscard]] bool misses_threads(const profile::WatchRow& watch) const { return are_few_ && misses(watch); }

 private:
  static bool misses(const profile::WatchRow& watch);
  bool are_few_ = true;
};

}  // namespace crosstalk::attribution
