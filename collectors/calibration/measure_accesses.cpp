// SPDX-License-Identifier: Apache-2.0
// Roofs of loads and stores by level, width, mix and number of threads, and those of floating point between one core
// and all.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/cycles.h"
#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/stream_code.h"
#include "collectors/calibration/traffic_arrays.h"
#include "collectors/calibration/working_set.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Level;
using models::Mix;
using models::Width;

/// `nop` after each group of two loads and a store.
constexpr std::array<std::uint32_t, 14> fillers_of_groups = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 96, 192};

std::vector<Width> supported_widths() {
  std::vector<Width> widths;
  for (const Width width : models::all_widths) {
    if (is_supported(width)) {
      widths.push_back(width);
    }
  }
  return widths;
}

models::Figure access_rate(Bench& bench, Team& team, const Result<Arrays>& arrays, Level level,
                           const StreamShape& shape) {
  const std::string method = std::string(name(shape.width)) + " loads and stores, " + std::string(name(shape.mix)) +
                             (level == Level::memory ? ", over arrays that no cache holds" : "");
  const auto stream = StreamLoop::make(shape);
  if (!arrays || !stream) {
    bench.schedule.skip();
    return refused((arrays ? stream.error() : arrays.error()).message, method);
  }
  const TrafficLoop loop{traffic_of(shape.mix),
                         [&stream](const TrafficArrays& part, std::uint64_t passes) { stream->run(part, passes); }};
  return rate_figure(seconds_a_byte(bench, bench.next_figure(), team, *arrays, loop, level, 1), method);
}

Result<Arrays> arrays_in(Bench& bench, Team& team, const std::vector<std::uint32_t>& cpus, Level level,
                         HeldMemory& of_cache) {
  const auto bytes = working_set(bench.machine, level, cpus, bench.available(), bench.beyond_caches);
  if (!bytes) {
    return tl::unexpected<Error>(bytes.error());
  }
  return Arrays::make(team, cpus, *bytes, level == Level::memory ? bench.memory : of_cache,
                      bench.preparation_deadline_ns());
}

models::Figure group_rate(Bench& bench, const Result<Arrays>& arrays, Level level, const StreamShape& shape) {
  const std::string method = "groups of two loads and a store, a cycle being a link of a chain of additions";
  const auto stream = StreamLoop::make(shape);
  if (!arrays || !stream) {
    bench.schedule.skip();
    return refused((arrays ? stream.error() : arrays.error()).message, method);
  }
  const models::Traffic traffic = traffic_of(shape.mix);
  const bool memory = level == Level::memory;
  Windows windows(*arrays, traffic);
  const std::uint64_t bytes = memory ? windows.bytes() : arrays->each(traffic);
  return per_cycle_figure(
      bench, method, static_cast<double>(stream->memory_instructions(bytes, 1)),
      [&](std::uint64_t passes) { stream->run(arrays->of(0, traffic, memory ? windows.next() : 0, bytes), passes); },
      memory ? 1 : 0);
}

}  // namespace

std::vector<std::uint32_t> thread_counts(std::size_t cores) {
  std::vector<std::uint32_t> counts;
  for (std::uint32_t threads = 1; threads < cores; threads *= 2) {
    counts.push_back(threads);
  }
  counts.push_back(static_cast<std::uint32_t>(cores));
  return counts;
}

std::vector<std::uint32_t> cores_for(const Bench& bench, std::uint32_t threads) {
  return threads == 1 ? std::vector{bench.cores.back()}
                      : std::vector(bench.cores.begin(), bench.cores.begin() + threads);
}

std::size_t count_accesses(std::size_t cores) {
  return thread_counts(cores).size() * models::all_levels.size() * supported_widths().size() *
         models::names<Mix>().size();
}

std::size_t count_groups() { return models::all_levels.size() * supported_widths().size() * fillers_of_groups.size(); }

std::vector<models::AccessRate> measure_accesses(Bench& bench) {
  std::vector<models::AccessRate> rates;
  for (const std::uint32_t threads : thread_counts(bench.cores.size())) {
    const std::vector<std::uint32_t> cpus = cores_for(bench, threads);
    Team team(cpus);
    for (const Level level : models::all_levels) {
      bench.progress("loads and stores in " + std::string(name(level)) + " by " + std::to_string(threads) +
                     (threads == 1 ? " thread" : " threads"));
      HeldMemory of_cache;
      const auto arrays = arrays_in(bench, team, cpus, level, of_cache);
      for (const Width width : supported_widths()) {
        for (const Mix mix : {Mix::loads, Mix::two_to_one, Mix::one_to_one, Mix::stores}) {
          rates.push_back({level, width, mix, threads, access_rate(bench, team, arrays, level, {width, mix, 0})});
        }
      }
    }
  }
  return rates;
}

std::vector<models::GroupRate> measure_groups(Bench& bench) {
  std::vector<models::GroupRate> rates;
  for (const Level level : models::all_levels) {
    bench.progress("groups of memory instructions in " + std::string(name(level)));
    HeldMemory of_cache;
    const auto arrays = arrays_in(bench, bench.one, {bench.cores.back()}, level, of_cache);
    for (const Width width : supported_widths()) {
      for (const std::uint32_t fillers : fillers_of_groups) {
        rates.push_back({level, width, fillers, group_rate(bench, arrays, level, {width, Mix::two_to_one, fillers})});
      }
    }
  }
  return rates;
}

}  // namespace crosstalk::collectors::calibration
