// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/working_set.h"

#include <algorithm>
#include <string>

#include "collectors/calibration/machine_description.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Cache;
using models::Level;
using models::Machine;

constexpr std::uint64_t granularity = std::uint64_t{1} << 12;
constexpr std::uint64_t least_memory = std::uint64_t{32} << 20;

std::uint64_t bytes_of(const Machine& machine, std::uint32_t level) {
  const Cache* const cache = machine.cache_of(level);
  return cache != nullptr ? cache->bytes : 0;
}

/// Takes a part of the cache that leaves room for other data, and no more than needed to exceed the level before: on
/// virtual machines other guests use the same cache.
Result<std::uint64_t> within(const Machine& machine, std::uint32_t level, const std::vector<std::uint32_t>& cpus) {
  constexpr std::uint64_t enough = 3;  // times the level before
  const std::uint64_t share = bytes_of(machine, level) / sharers(machine, level, cpus);
  const std::uint64_t before = bytes_of(machine, level - 1);
  if (bytes_of(machine, level) == 0) {
    return fail(ErrorCode::unsupported, "this machine has no such cache, or does not tell of it");
  }
  const std::uint64_t most = level < 3 ? share / 2 : share / 4 * 3;
  const std::uint64_t wanted = before == 0 ? most : std::min(most, enough * before);
  if (wanted * 2 < before * 3) {
    return fail(ErrorCode::unsupported, "a thread's part of this cache is hardly more than the level before it holds");
  }
  return wanted / granularity * granularity;
}

/// Nothing is left of an array in a cache when its turn comes again.
Result<std::uint64_t> beyond(const Machine& machine, const std::vector<std::uint32_t>& cpus, std::uint64_t available,
                             std::uint64_t beyond_caches) {
  std::uint64_t cached = 0;
  for (const Cache& cache : machine.caches) {
    const bool used = std::any_of(cpus.begin(), cpus.end(), [&](std::uint32_t cpu) {
      return std::binary_search(cache.cpus.begin(), cache.cpus.end(), cpu);
    });
    cached += used && cache.level > 1 ? cache.bytes : 0;
  }
  const std::uint64_t each = std::max(least_memory, beyond_caches * cached) / cpus.size();
  if (available != 0 && each * cpus.size() > available / 2) {
    return fail(ErrorCode::refused, std::to_string(each * cpus.size() >> 20U) + " MiB are needed, and " +
                                        std::to_string(available >> 20U) + " MiB are free");
  }
  return each / granularity * granularity;
}

}  // namespace

Result<std::uint64_t> working_set(const Machine& machine, Level level, const std::vector<std::uint32_t>& cpus,
                                  std::uint64_t available, std::uint64_t beyond_caches) {
  switch (level) {
    case Level::l1d:
      return within(machine, 1, cpus);
    case Level::l2:
      return within(machine, 2, cpus);
    case Level::l3:
      return within(machine, 3, cpus);
    case Level::memory:
      break;
  }
  return beyond(machine, cpus, available, beyond_caches);
}

Result<std::uint64_t> larger_working_set(const Machine& machine, const std::vector<std::uint32_t>& cpus) {
  constexpr double clearly = 1.5;
  const auto usual = within(machine, 2, cpus);
  const std::uint64_t most = bytes_of(machine, 2) / sharers(machine, 2, cpus) / 16 * 9 / granularity * granularity;
  if (!usual || static_cast<double>(most) < clearly * static_cast<double>(*usual)) {
    return fail(ErrorCode::unsupported, "this machine's level 2 cache is small");
  }
  return most;
}

}  // namespace crosstalk::collectors::calibration
