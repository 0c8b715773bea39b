// SPDX-License-Identifier: Apache-2.0
// Which samples begin a watch, for how long, and which threads are armed for it.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "collectors/watch_policy/board.h"
#include "collectors/watch_policy/sampled_access.h"
#include "profile/watch_settings.h"

namespace crosstalk::watch_policy {

/// Is the line of a sample suspected of being exchanged, by what the board knows at `now_ms`?
[[nodiscard]] bool is_suspected(const Suspicion& known, std::uint32_t now_ms);

/// Would an exchange be missed if a line could not be watched? Not where nobody stores: all threads that ask for the
/// time read the kernel's pages.
[[nodiscard]] bool would_miss_exchange(const Suspicion& known, bool suspected);

/// May such an access begin a watch where partners are looked for so (`record --partner`)? next_access asks who comes
/// after a store, next_store whose store a load has met, board looks only where the board knows of another thread.
[[nodiscard]] bool begins_watch(profile::Partner partner, AccessKind kind, bool suspected);

/// Of the samples that may begin a watch: shall this one? `sample_number` counts those of its thread.
[[nodiscard]] bool is_drawn(const SampledAccess& access, const Suspicion& known, bool suspected,
                            std::uint64_t sample_number, std::uint64_t& random);

/// How long a watch lasts, if it does not end before. Most lines that are explored belong to one thread, and those
/// whose exchange costs much are exchanged many times a millisecond: most are watched briefly, for a fortieth of the
/// whole horizon; one in so many gives slow exchange its chance.
[[nodiscard]] std::uint64_t choose_horizon(bool suspected, std::uint64_t whole_horizon_ns, std::uint64_t& random);

/// Other threads armed for one watch at most: arming one takes some 10 us.
inline constexpr std::uint32_t most_armed = 24;

/// Draws which of the other threads are armed, where they are too many: each set of most_armed of them is as likely as
/// any other (Knuth, The Art of Computer Programming, volume 2, 3.4.2, algorithm S). A partner that the board has named
/// is armed in any case; then the others share what room is left.
class ArmedDraw {
 public:
  /// `candidates`: threads that can be armed, but for the sampled one; the partner is one of them if it `has_partner`.
  ArmedDraw(std::uint32_t candidates, bool has_partner);
  /// Is the next candidate, of those but for the partner, armed? To be asked once for each.
  bool take(std::uint64_t& random);
  /// The probability that a candidate is armed; a partner that was named is, with certainty.
  [[nodiscard]] float probability() const { return probability_; }
  /// Nobody is left to be drawn.
  [[nodiscard]] bool complete() const { return wanted_ == 0; }

 private:
  std::uint32_t left_, wanted_;  // of the candidates but for the partner
  float probability_;
};

}  // namespace crosstalk::watch_policy
