// SPDX-License-Identifier: Apache-2.0
#include "collectors/watch_policy/runs.h"

#include <algorithm>

namespace crosstalk::watch_policy {
namespace {

constexpr std::uint32_t most_traps = 16;
constexpr std::uint32_t most_runs = 6;

}  // namespace

WatchMode first_mode(const SampledAccess& access, std::uint32_t word) {
  if (word != 0) {
    return WatchMode::write_only;
  }
  if (access.yet_to_come) {
    return WatchMode::read_write;  // its trap confirms it
  }
  return stores(access.kind) ? WatchMode::off : WatchMode::write_only;  // the store of this run is known already
}

WatchMode mode_after_trap(WatchMode mode) {
  return mode == WatchMode::read_write ? WatchMode::write_only : WatchMode::off;
}

void WatchProgress::begin(std::uint32_t number, const SampledAccess& access, std::uint64_t deadline_ns) {
  traps_.store(0, std::memory_order_relaxed);
  runs_.store(0, std::memory_order_relaxed);
  stored_.store(!access.yet_to_come && stores(access.kind) ? 1 : 0, std::memory_order_relaxed);
  runner_.store(number, std::memory_order_relaxed);
  deadline_ns_.store(deadline_ns, std::memory_order_relaxed);
}

Turn WatchProgress::advance(std::uint32_t number, std::uint32_t sequence, std::uint64_t now_ns) {
  const std::uint32_t previous = runner_.exchange(number, std::memory_order_acq_rel);
  const bool taken = previous != number;
  std::uint32_t runs = runs_.load(std::memory_order_relaxed);
  if (taken) {
    runs = runs_.fetch_add(1, std::memory_order_relaxed) + 1;
  }
  // Extends the watch: until its first new owner has been watched for a while, it is not known if that thread reads
  // data stored before the watch began.
  if (taken && runs == 1) {
    deadline_ns_.store(std::max(deadline_ns(), now_ns + profile::verdict_ns), std::memory_order_relaxed);
  }
  if (sequence + 1 >= most_traps || runs >= most_runs) {
    return {0, profile::CloseReason::full};
  }
  if (expired(now_ns)) {
    return {0, profile::CloseReason::horizon};
  }
  return {taken ? previous : 0, std::nullopt};
}

}  // namespace crosstalk::watch_policy
