// SPDX-License-Identifier: Apache-2.0
// Decides which samples begin a watch, for how long, and which threads are armed for it.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/sampled_access.h"
#include "profile/watch_settings.h"

namespace crosstalk::watch_policy {

/// True if the line of a sample is suspected of being exchanged, by what the board knows at `now_ms`.
[[nodiscard]] bool is_suspected(const Suspicion& known, std::uint32_t now_ms);

/// True if an exchange would be missed if a line could not be watched. False if nobody stores: all threads that ask for
/// the time read the kernel's pages.
[[nodiscard]] bool would_miss_exchange(const Suspicion& known, bool suspected);

/// True if such an access may begin a watch for this kind of partner (`record --partner`): next_access looks for the
/// thread after a store, next_store for the thread whose store a load has met, board looks only if the board knows of
/// another thread.
[[nodiscard]] bool begins_watch(profile::Partner partner, AccessKind kind, bool suspected);

/// Draws if this sample, which may begin a watch, begins one. `sample_number` counts the samples of its thread.
[[nodiscard]] bool is_drawn(const SampledAccess& access, const Suspicion& known, bool suspected,
                            std::uint64_t sample_number, std::uint64_t& random);

/// Returns how long a watch lasts, if it does not end before. Most explored lines belong to one thread, and lines with
/// costly exchange are exchanged many times a millisecond: so most are watched briefly, for a fortieth of the whole
/// horizon. One in so many gets the whole horizon, to catch slow exchange.
[[nodiscard]] std::uint64_t choose_horizon(bool suspected, std::uint64_t whole_horizon_ns, std::uint64_t& random);

using profile::most_armed;

/// Draws the threads to arm, if there are too many others: each set of most_armed of them is as likely as any other
/// (Knuth, The Art of Computer Programming, volume 2, 3.4.2, algorithm S). A partner that the board has named is armed
/// in any case; the others share the rest.
class ArmedDraw {
 public:
  /// `candidates`: threads that can be armed, but for the sampled one; the partner is one of them if it `has_partner`.
  ArmedDraw(std::uint32_t candidates, bool has_partner);
  /// True if the next candidate, apart from the partner, is armed. Call it once for each.
  bool take(std::uint64_t& random);
  /// True if nobody is left to be drawn.
  [[nodiscard]] bool complete() const { return wanted_ == 0; }

 private:
  std::uint32_t left_, wanted_;  // of the candidates but for the partner
};

}  // namespace crosstalk::watch_policy
