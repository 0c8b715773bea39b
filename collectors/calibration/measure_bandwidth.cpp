// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/traffic_kernels.h"
#include "collectors/calibration/working_set.h"
#include "models/processor_facts.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Level;
using models::Scope;
using models::Traffic;
using models::Width;

// Arrays begin at different distances from a page, lest a load is taken for one of the data that was just stored 4096
// bytes away.
constexpr std::uint64_t stagger = 1344;

/// Memory of each member of a team, with its arrays.
class Arrays {
 public:
  /// Makes `bytes` for each member, on `cpus`, each by itself, in `memory`, which has to outlive them. Refused if there
  /// is not so much by `deadline_ns`.
  static Result<Arrays> make(Team& team, const std::vector<std::uint32_t>& cpus, std::uint64_t bytes,
                             HeldMemory& memory, std::uint64_t deadline_ns) {
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

  /// Bytes of each of as many arrays as `traffic` has.
  [[nodiscard]] std::uint64_t each(Traffic traffic) const {
    return bytes_ / arrays_of(traffic) / traffic_round_bytes * traffic_round_bytes;
  }

  /// A member's arrays, `bytes` of each from `offset` on.
  [[nodiscard]] TrafficArrays of(unsigned member, Traffic traffic, std::uint64_t offset, std::uint64_t bytes) const {
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

 private:
  static bool fill(std::byte* memory, std::uint64_t bytes, std::uint64_t deadline_ns) {
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

  std::uint64_t bytes_ = 0;
  std::vector<std::byte*> memory_;  // of each member
};

/// Seconds for each byte that `kernel` moves in a cache: passes over the same arrays.
Tries in_cache(Bench& bench, const Effort& effort, Team& team, const Arrays& arrays, const TrafficKernel& kernel,
               double moved_per_pass) {
  const std::uint64_t bytes = arrays.each(kernel.traffic);
  const auto pass = [&](unsigned member, std::uint64_t passes) {
    Checksum checksum{};
    kernel.run(arrays.of(member, kernel.traffic, 0, bytes), passes, checksum);
  };
  std::uint64_t passes = 0;
  bench.one.run([&](unsigned) { passes = rounds_for(effort, [&](std::uint64_t n) { pass(0, n); }); });
  return collect(effort, [&] {
    return seconds_together(team, moved_per_pass * static_cast<double>(passes),
                            [&](unsigned member) { pass(member, passes); });
  });
}

/// Seconds for each byte that moves to or from memory: each try takes the next window of arrays that no cache holds, so
/// that nothing of it is left in any.
Tries in_memory(const Effort& effort, Team& team, const Arrays& arrays, const TrafficKernel& kernel,
                double moved_per_requested) {
  constexpr std::uint64_t windows_at_least = 4;
  constexpr std::uint64_t most_a_try = std::uint64_t{16} << 20;
  const std::uint64_t each = arrays.each(kernel.traffic);
  const std::uint64_t window = std::min(each / windows_at_least, most_a_try / arrays_of(kernel.traffic)) /
                               traffic_round_bytes * traffic_round_bytes;
  const double moved = moved_per_requested * static_cast<double>(requested_bytes(kernel.traffic, window));
  std::uint64_t offset = 0;
  return collect(effort, [&] {
    const std::uint64_t at = offset;
    offset = offset + 2 * window <= each ? offset + window : 0;
    return seconds_together(team, moved, [&](unsigned member) {
      Checksum checksum{};
      kernel.run(arrays.of(member, kernel.traffic, at, window), 1, checksum);
    });
  });
}

Tries seconds_a_byte(Bench& bench, const Effort& effort, Team& team, const Arrays& arrays, const TrafficKernel& kernel,
                     Level level) {
  const double moved = models::moved_per_requested(level, kernel.traffic);
  if (level == Level::memory) {
    return in_memory(effort, team, arrays, kernel, moved);
  }
  const std::uint64_t bytes = requested_bytes(kernel.traffic, arrays.each(kernel.traffic));
  return in_cache(bench, effort, team, arrays, kernel, moved * static_cast<double>(bytes));
}

/// Returns the vectors to try: the widest, and in caches, where they need not be the fastest, the next narrower ones
/// too.
std::vector<Width> widths_for(Level level) {
  if (is_supported(Width::avx512)) {
    return level == Level::memory ? std::vector{Width::avx512} : std::vector{Width::avx512, Width::avx2};
  }
  return {is_supported(Width::avx2) ? Width::avx2 : Width::sse};
}

std::string method_of(Level level, Traffic traffic, Width width) {
  std::string text = std::string(name(width)) + " vectors over " + std::to_string(arrays_of(traffic)) +
                     (arrays_of(traffic) == 1 ? " array" : " arrays");
  if (level == Level::memory) {
    text += " that no cache holds";
  }
  if (models::moved_per_requested(level, traffic) > 1) {
    text += "; lines that are stored to count twice, for they are fetched and written back";
  }
  return text;
}

class Bandwidths {
 public:
  explicit Bandwidths(Bench& bench) : bench_(bench) {}

  void measure(Level level, Scope scope) {
    Team& team = bench_.team(scope);
    const std::vector<std::uint32_t> cpus = bench_.cpus_of(scope);
    HeldMemory of_cache;
    const auto bytes = working_set(bench_.machine, level, cpus, bench_.available(), bench_.beyond_caches);
    const Result<Arrays> arrays =
        bytes ? Arrays::make(team, cpus, *bytes, level == Level::memory ? bench_.memory : of_cache,
                             bench_.preparation_deadline_ns())
              : tl::unexpected<Error>(bytes.error());
    for (const Traffic traffic : traffics_of(level)) {
      models::Figure figure;
      if (arrays) {
        figure = best_width(team, *arrays, level, scope, traffic);
      } else {
        bench_.schedule.skip();
        figure = refused(arrays.error().message, "");
      }
      figure.theoretical = theory(level, scope, traffic);
      rows_.push_back({level, traffic, scope, std::move(figure)});
    }
  }

  [[nodiscard]] std::vector<models::Bandwidth> take() { return std::move(rows_); }

 private:
  /// Streaming stores go past the caches.
  static std::vector<Traffic> traffics_of(Level level) {
    std::vector<Traffic> traffics = {Traffic::load, Traffic::store, Traffic::copy, Traffic::triad};
    if (level == Level::memory) {
      traffics.insert(traffics.end(), {Traffic::store_streaming, Traffic::copy_streaming, Traffic::triad_streaming});
    }
    return traffics;
  }

  /// On all cores the width is taken that was the best one on one.
  models::Figure best_width(Team& team, const Arrays& arrays, Level level, Scope scope, Traffic traffic) {
    const auto known = widths_.find({level, traffic});
    const std::vector<Width> widths =
        scope == Scope::one_core || known == widths_.end() ? widths_for(level) : std::vector{known->second};
    models::Figure best;
    Effort effort = bench_.next_figure();
    const std::uint64_t end_ns = effort.deadline_ns;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const Width width = widths[i];
      const std::uint64_t now_ns = monotonic_ns();
      effort.deadline_ns = now_ns + (std::max(end_ns, now_ns) - now_ns) / (widths.size() - i);
      const auto kernels = traffic_kernels();
      const auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const TrafficKernel& k) {
        return k.traffic == traffic && k.width == width;
      });
      models::Figure figure =
          rate_figure(seconds_a_byte(bench_, effort, team, arrays, *kernel, level), method_of(level, traffic, width));
      if (width == widths.front() || (figure.value && (!best.value || *figure.value > *best.value))) {
        best = std::move(figure);
        widths_[{level, traffic}] = width;
      }
    }
    return best;
  }

  [[nodiscard]] std::optional<double> theory(Level level, Scope scope, Traffic traffic) const {
    const models::CoreFacts* const facts = models::facts_of(bench_.machine.identity);
    const models::Frequency& frequency = bench_.machine.frequency;
    const auto hz = scope == Scope::one_core ? frequency.one_core_hz.value : frequency.all_cores_hz.value;
    const double cores = scope == Scope::one_core ? 1 : bench_.all.size();
    return facts != nullptr && hz ? models::theoretical_bandwidth(*facts, level, traffic, *hz * cores) : std::nullopt;
  }

  Bench& bench_;
  std::map<std::pair<Level, Traffic>, Width> widths_;
  std::vector<models::Bandwidth> rows_;
};

}  // namespace

std::vector<models::Bandwidth> measure_bandwidths(Bench& bench) {
  Bandwidths bandwidths(bench);
  for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
    for (const Level level : {Level::l1d, Level::l2, Level::l3, Level::memory}) {
      bench.progress("bandwidth of " + std::string(name(level)) +
                     (scope == Scope::one_core ? " on one core" : " on all cores"));
      bandwidths.measure(level, scope);
    }
  }
  return bandwidths.take();
}

}  // namespace crosstalk::collectors::calibration
