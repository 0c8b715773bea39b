// SPDX-License-Identifier: Apache-2.0
// Roofs of loads and stores by level, width, mix and number of threads, and their rates beside other instructions.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
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
constexpr std::array<std::uint32_t, 10> fillers_of_groups = {0, 1, 2, 3, 4, 6, 8, 12, 16, 24};

constexpr const char* group_method = "groups of two loads and a store, a cycle being a link of a chain of additions";

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

/// Some caches of level 2 are faster over larger arrays: on a Zen 5 from 256 KiB on or only at 576, as loops differ,
/// and by a third. The roof is the faster figure, and its uncertainty reaches to the slower one.
models::Figure faster_of(models::Figure a, models::Figure b) {
  if (!a.value || (b.value && *b.value > *a.value)) {
    std::swap(a, b);
  }
  if (a.value && b.value) {
    a.spread = std::max(a.spread, 1 - *b.value / *a.value);
    a.method += "; the faster of two sizes";
  }
  return a;
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

Result<Arrays> larger_arrays(Bench& bench, Team& team, const std::vector<std::uint32_t>& cpus, HeldMemory& memory) {
  const auto bytes = larger_working_set(bench.machine, cpus);
  return bytes ? Arrays::make(team, cpus, *bytes, memory, bench.preparation_deadline_ns())
               : tl::unexpected<Error>(bytes.error());
}

models::Figure group_rate(Bench& bench, const Result<Arrays>& arrays, Level level, const StreamShape& shape) {
  const auto stream = StreamLoop::make(shape);
  if (!arrays || !stream) {
    bench.schedule.skip();
    return refused((arrays ? stream.error() : arrays.error()).message, group_method);
  }
  const models::Traffic traffic = traffic_of(shape.mix);
  const bool memory = level == Level::memory;
  Windows windows(*arrays, traffic);
  const std::uint64_t bytes = memory ? windows.bytes() : arrays->each(traffic);
  return per_cycle_figure(
      bench, group_method, static_cast<double>(stream->memory_instructions(bytes, 1)),
      [&](std::uint64_t passes) { stream->run(arrays->of(0, traffic, memory ? windows.next() : 0, bytes), passes); },
      memory ? 1 : 0);
}

/// The kinds of instructions that fill the groups of a width at their ridge.
std::array<models::Kind, 2> kinds_beside(Width width) { return {models::Kind::integer_add, models::kind_of(width)}; }

/// Instructions of a kind that take the time of a group; 0: not known.
std::uint32_t fillers_at_ridge(const models::Machine& machine, Level level, Width width, models::Kind kind) {
  constexpr double most = 240;
  const models::KindLimits* const limits = machine.limits_of(kind);
  const models::Figure* const memory = machine.most_of_groups(level, width);
  if (limits == nullptr || !limits->per_cycle.value || memory == nullptr) {
    return 0;
  }
  const double fillers = group_size(Mix::two_to_one) * *limits->per_cycle.value / *memory->value;
  return static_cast<std::uint32_t>(std::clamp(std::round(fillers), 1.0, most));
}

models::RidgeRate ridge_rate(Bench& bench, const models::Machine& machine, const Result<Arrays>& arrays,
                             models::RidgeRate ridge) {
  ridge.fillers = fillers_at_ridge(machine, ridge.level, ridge.width, ridge.kind);
  if (ridge.fillers == 0) {
    bench.schedule.skip();
    ridge.per_cycle = refused("the ridge is not known", group_method);
  } else {
    ridge.per_cycle = group_rate(bench, arrays, ridge.level, {ridge.width, Mix::two_to_one, ridge.fillers, ridge.kind});
  }
  return ridge;
}

/// Calls `visit` for each level and width, with one core's arrays of the level.
template <class Visit>
void at_levels(Bench& bench, const std::string& what, const Visit& visit) {
  for (const Level level : models::all_levels) {
    bench.progress(what + " in " + std::string(name(level)));
    HeldMemory of_cache;
    const auto arrays = arrays_in(bench, bench.one, {bench.cores.back()}, level, of_cache);
    for (const Width width : supported_widths()) {
      visit(level, width, arrays);
    }
  }
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
  constexpr std::size_t sizes = models::all_levels.size() + 1;  // two of L2
  return thread_counts(cores).size() * sizes * supported_widths().size() * models::names<Mix>().size();
}

std::size_t count_groups() { return models::all_levels.size() * supported_widths().size() * fillers_of_groups.size(); }

std::size_t count_ridges() { return models::all_levels.size() * supported_widths().size() * kinds_beside({}).size(); }

std::vector<models::AccessRate> measure_accesses(Bench& bench) {
  std::vector<models::AccessRate> rates;
  for (const std::uint32_t threads : thread_counts(bench.cores.size())) {
    const std::vector<std::uint32_t> cpus = cores_for(bench, threads);
    Team team(cpus);
    for (const Level level : models::all_levels) {
      bench.progress("loads and stores in " + std::string(name(level)) + " by " + std::to_string(threads) +
                     (threads == 1 ? " thread" : " threads"));
      HeldMemory of_cache, of_larger;
      const auto arrays = arrays_in(bench, team, cpus, level, of_cache);
      const Result<Arrays> larger = level == Level::l2 ? larger_arrays(bench, team, cpus, of_larger)
                                                       : fail(ErrorCode::unsupported, "one size does");
      for (const Width width : supported_widths()) {
        for (const Mix mix : {Mix::loads, Mix::two_to_one, Mix::one_to_one, Mix::stores}) {
          const auto rate = [&](const auto& over) { return access_rate(bench, team, over, level, {width, mix, 0}); };
          models::Figure figure = rate(arrays);
          figure = level == Level::l2 ? faster_of(std::move(figure), rate(larger)) : figure;
          rates.push_back({level, width, mix, threads, std::move(figure)});
        }
      }
    }
  }
  return rates;
}

std::vector<models::GroupRate> measure_groups(Bench& bench) {
  std::vector<models::GroupRate> rates;
  at_levels(bench, "groups of memory instructions", [&](Level level, Width width, const Result<Arrays>& arrays) {
    for (const std::uint32_t fillers : fillers_of_groups) {
      rates.push_back({level, width, fillers, group_rate(bench, arrays, level, {width, Mix::two_to_one, fillers})});
    }
  });
  return rates;
}

std::vector<models::RidgeRate> measure_ridges(Bench& bench, const models::Machine& machine) {
  std::vector<models::RidgeRate> ridges;
  at_levels(bench, "memory instructions beside others", [&](Level level, Width width, const Result<Arrays>& arrays) {
    for (const models::Kind kind : kinds_beside(width)) {
      ridges.push_back(ridge_rate(bench, machine, arrays, {level, width, kind, 0, {}}));
    }
  });
  return ridges;
}

}  // namespace crosstalk::collectors::calibration
