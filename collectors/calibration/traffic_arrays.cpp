// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/traffic_arrays.h"

#include <algorithm>
#include <string>

#include "base/clock.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Level;
using models::Traffic;

// Arrays begin at different distances from a page, lest a load is taken for one of the data that was just stored 4096
// bytes away.
constexpr std::uint64_t stagger = 1344;

bool fill(std::byte* memory, std::uint64_t bytes, std::uint64_t deadline_ns) {
  constexpr std::uint64_t piece = std::uint64_t{4} << 20;
  for (std::uint64_t at = 0; at < bytes; at += piece) {
    if (monotonic_ns() > deadline_ns) {
      return false;
    }
    auto* const first = reinterpret_cast<double*>(memory + at);
    std::fill(first, first + std::min(piece, bytes - at) / sizeof(double), 1.0);
  }
  return true;
}

/// Passes over the same arrays.
Tries in_cache(Bench& bench, const Effort& effort, Team& team, const Arrays& arrays, const TrafficLoop& loop,
               double moved_per_pass) {
  const std::uint64_t bytes = arrays.each(loop.traffic);
  const auto pass = [&](unsigned member, std::uint64_t passes) {
    loop.run(arrays.of(member, loop.traffic, 0, bytes), passes);
  };
  std::uint64_t passes = 0;
  bench.one.run([&](unsigned) { passes = rounds_for(effort, [&](std::uint64_t n) { pass(0, n); }); });
  return collect(effort, [&] {
    return seconds_together(team, moved_per_pass * static_cast<double>(passes),
                            [&](unsigned member) { pass(member, passes); });
  });
}

Tries in_memory(const Effort& effort, Team& team, const Arrays& arrays, const TrafficLoop& loop,
                double moved_per_requested) {
  Windows windows(arrays, loop.traffic);
  const double moved = moved_per_requested * static_cast<double>(requested_bytes(loop.traffic, windows.bytes()));
  return collect(effort, [&] {
    const std::uint64_t at = windows.next();
    return seconds_together(
        team, moved, [&](unsigned member) { loop.run(arrays.of(member, loop.traffic, at, windows.bytes()), 1); });
  });
}

}  // namespace

Result<Arrays> Arrays::make(Team& team, const std::vector<std::uint32_t>& cpus, std::uint64_t bytes, HeldMemory& memory,
                            std::uint64_t deadline_ns) {
  Arrays arrays;
  arrays.bytes_ = bytes;
  arrays.memory_.resize(team.size());
  memory.expect(cpus);
  std::vector<std::string> missing(team.size());
  team.run([&](unsigned member) {
    const auto block = memory.block(cpus[member], bytes + arrays_slack, deadline_ns);
    if (!block) {
      missing[member] = block.error().message;
    } else if (!fill((*block)->data(), bytes + arrays_slack, deadline_ns)) {
      missing[member] = "arrays were not filled in time: the machine is too busy";
    } else {
      arrays.memory_[member] = (*block)->data();
    }
  });
  for (const std::string& reason : missing) {
    if (!reason.empty()) {
      return fail(ErrorCode::system, reason);
    }
  }
  return arrays;
}

std::uint64_t Arrays::each(Traffic traffic) const {
  return bytes_ / arrays_of(traffic) / traffic_round_bytes * traffic_round_bytes;
}

TrafficArrays Arrays::of(unsigned member, Traffic traffic, std::uint64_t offset, std::uint64_t bytes) const {
  const auto array = [&](std::uint64_t number) {
    return reinterpret_cast<double*>(memory_[member] + number * (each(traffic) + stagger) + offset);
  };
  TrafficArrays arrays;
  arrays.bytes = bytes;
  arrays.a = array(0);
  arrays.b = array(traffic == Traffic::load ? 0 : 1);
  arrays.c = array(2);
  return arrays;
}

Windows::Windows(const Arrays& arrays, Traffic traffic) : each_(arrays.each(traffic)) {
  constexpr std::uint64_t windows_at_least = 4;
  constexpr std::uint64_t most_a_try = std::uint64_t{16} << 20;
  window_ =
      std::min(each_ / windows_at_least, most_a_try / arrays_of(traffic)) / traffic_round_bytes * traffic_round_bytes;
}

std::uint64_t Windows::next() {
  const std::uint64_t at = offset_;
  offset_ = offset_ + 2 * window_ <= each_ ? offset_ + window_ : 0;
  return at;
}

Tries seconds_a_byte(Bench& bench, const Effort& effort, Team& team, const Arrays& arrays, const TrafficLoop& loop,
                     Level level, double moved_per_requested) {
  if (level == Level::memory) {
    return in_memory(effort, team, arrays, loop, moved_per_requested);
  }
  const std::uint64_t bytes = requested_bytes(loop.traffic, arrays.each(loop.traffic));
  return in_cache(bench, effort, team, arrays, loop, moved_per_requested * static_cast<double>(bytes));
}

}  // namespace crosstalk::collectors::calibration
