// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/selection.h"

#include <algorithm>

namespace crosstalk::watch_policy {
namespace {

constexpr std::uint32_t forgiven_duds = 4;     // fruitless watches after which a line is no longer suspected
constexpr std::uint32_t unstored_duds = 2;     // the same, while nobody has been seen to store there
constexpr std::uint32_t well_known_hits = 64;  // watches after which a line is watched less and less often
constexpr std::uint32_t least_one_in = 4;      // but at least at one in so many of its samples
constexpr std::uint32_t memory_ms = 2000;      // how long the board's word of a partner is good for
constexpr std::uint64_t stack_explored_one_in = 16;
constexpr std::uint64_t long_one_in = 32;
constexpr std::uint64_t briefer_by = 40;

}  // namespace

bool is_suspected(const Suspicion& known, std::uint32_t now_ms) {
  return known.other_thread && now_ms - known.partner.time_ms < memory_ms && known.duds < forgiven_duds &&
         (known.store_seen || known.duds < unstored_duds);
}

bool would_miss_exchange(const Suspicion& known, bool suspected) { return suspected && known.store_seen; }

bool begins_watch(profile::Partner partner, AccessKind kind, bool suspected) {
  switch (partner) {
    case profile::Partner::next_access:
      return stores(kind);
    case profile::Partner::next_store:
      return loads(kind);
    case profile::Partner::board:
      return suspected;
    default:
      return true;
  }
}

bool is_drawn(const SampledAccess& access, const Suspicion& known, bool suspected, std::uint64_t sample_number,
              std::uint64_t& random) {
  if (!suspected) {
    return !access.on_own_stack || sample_number % stack_explored_one_in == 0;
  }
  // The cost of watching a line that has been exchanged many times is better spent on finding others. Chance decides,
  // so that the watched samples of the line stand for its others.
  if (known.hits <= well_known_hits) {
    return true;
  }
  return next_random(random) % std::min(known.hits / well_known_hits + 1, least_one_in) == 0;
}

std::uint64_t choose_horizon(bool suspected, std::uint64_t whole_horizon_ns, std::uint64_t& random) {
  const bool whole = suspected || next_random(random) % long_one_in == 0;
  return whole ? whole_horizon_ns : whole_horizon_ns / briefer_by;
}

ArmedDraw::ArmedDraw(std::uint32_t candidates, bool has_partner)
    : left_(candidates - (has_partner ? 1 : 0)), wanted_(std::min(left_, most_armed - (has_partner ? 1 : 0))) {}

bool ArmedDraw::take(std::uint64_t& random) {
  if (left_ == 0) {
    return false;
  }
  const bool taken = wanted_ == left_ || next_random(random) % left_ < wanted_;
  --left_;
  wanted_ -= taken ? 1 : 0;
  return taken;
}

}  // namespace crosstalk::watch_policy
