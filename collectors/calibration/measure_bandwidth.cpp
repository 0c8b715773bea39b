// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/memory_block.h"
#include "collectors/calibration/traffic_kernels.h"
#include "collectors/calibration/working_set.h"
#include "models/processor_facts.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Level;
using models::Scope;
using models::Traffic;
using models::Width;

// Arrays begin at different distances from a page, lest a load is taken for one of what was just stored 4096 bytes
// away.
constexpr std::uint64_t stagger = 1344;
constexpr std::uint64_t page = 4096;

/// Memory of each member of a team, and where its arrays are.
class Arrays {
 public:
  /// `bytes` for each member, each by itself. Empty when there is not so much.
  static std::optional<Arrays> make(Team& team, std::uint64_t bytes) {
    Arrays arrays;
    arrays.bytes_ = bytes;
    arrays.blocks_.resize(team.size());
    team.run([&](unsigned member) {
      auto block = MemoryBlock::map(bytes + 3 * page);
      if (block) {
        auto* const first = reinterpret_cast<double*>(block->data());
        std::fill(first, first + block->size() / sizeof(double), 1.0);
        arrays.blocks_[member] = std::move(*block);
      }
    });
    const bool all = std::all_of(arrays.blocks_.begin(), arrays.blocks_.end(),
                                 [](const MemoryBlock& block) { return block.data() != nullptr; });
    return all ? std::optional(std::move(arrays)) : std::nullopt;
  }

  /// Bytes of each of as many arrays as `traffic` has.
  [[nodiscard]] std::uint64_t each(Traffic traffic) const {
    return bytes_ / arrays_of(traffic) / traffic_round_bytes * traffic_round_bytes;
  }

  /// A member's arrays, `bytes` of each from `offset` on.
  [[nodiscard]] TrafficArrays of(unsigned member, Traffic traffic, std::uint64_t offset, std::uint64_t bytes) const {
    const auto array = [&](std::uint64_t number) {
      return reinterpret_cast<double*>(blocks_[member].data() + number * (each(traffic) + stagger) + offset);
    };
    TrafficArrays arrays;
    arrays.bytes = bytes;
    arrays.a = array(0);
    arrays.b = array(traffic == Traffic::load ? 0 : 1);
    arrays.c = array(2);
    return arrays;
  }

 private:
  std::uint64_t bytes_ = 0;
  std::vector<MemoryBlock> blocks_;
};

/// Seconds for each byte that `kernel` moves in a cache: passes over the same arrays.
std::vector<double> in_cache(Bench& bench, Team& team, const Arrays& arrays, const TrafficKernel& kernel,
                             double moved_per_pass) {
  const std::uint64_t bytes = arrays.each(kernel.traffic);
  const auto pass = [&](unsigned member, std::uint64_t passes) {
    Checksum checksum{};
    kernel.run(arrays.of(member, kernel.traffic, 0, bytes), passes, checksum);
  };
  std::uint64_t passes = 0;
  bench.one.run([&](unsigned) { passes = rounds_for(bench.effort, [&](std::uint64_t n) { pass(0, n); }); });
  return collect(bench.effort, [&] {
    return seconds_together(team, moved_per_pass * static_cast<double>(passes),
                            [&](unsigned member) { pass(member, passes); });
  });
}

/// Seconds for each byte that moves to or from memory: each try takes the next window of arrays that no cache holds, so
/// that nothing of it is left in any.
std::vector<double> in_memory(Bench& bench, Team& team, const Arrays& arrays, const TrafficKernel& kernel,
                              double moved_per_requested) {
  constexpr std::uint64_t windows_at_least = 4;
  constexpr std::uint64_t most_a_try = std::uint64_t{16} << 20;
  const std::uint64_t each = arrays.each(kernel.traffic);
  const std::uint64_t window = std::min(each / windows_at_least, most_a_try / arrays_of(kernel.traffic)) /
                               traffic_round_bytes * traffic_round_bytes;
  const double moved = moved_per_requested * static_cast<double>(requested_bytes(kernel.traffic, window));
  std::uint64_t offset = 0;
  return collect(bench.effort, [&] {
    const std::uint64_t at = offset;
    offset = offset + 2 * window <= each ? offset + window : 0;
    return seconds_together(team, moved, [&](unsigned member) {
      Checksum checksum{};
      kernel.run(arrays.of(member, kernel.traffic, at, window), 1, checksum);
    });
  });
}

std::vector<double> seconds_a_byte(Bench& bench, Team& team, const Arrays& arrays, const TrafficKernel& kernel,
                                   Level level) {
  const double moved = models::moved_per_requested(level, kernel.traffic);
  if (level == Level::memory) {
    return in_memory(bench, team, arrays, kernel, moved);
  }
  const std::uint64_t bytes = requested_bytes(kernel.traffic, arrays.each(kernel.traffic));
  return in_cache(bench, team, arrays, kernel, moved * static_cast<double>(bytes));
}

/// What to try: the widest vectors, and in caches, where they need not be the fastest, the next narrower ones too.
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
    const std::vector<std::uint32_t> cpus = scope == Scope::one_core ? std::vector{bench_.cores.back()} : bench_.cores;
    const auto bytes = working_set(bench_.machine, level, cpus, available_memory());
    const auto arrays = bytes ? Arrays::make(team, *bytes) : std::nullopt;
    for (const Traffic traffic : traffics_of(level)) {
      models::Figure figure = arrays ? best_width(team, *arrays, level, scope, traffic)
                                     : refused(bytes ? "there is not enough memory" : bytes.error().message, "");
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
    for (const Width width : widths) {
      const auto kernels = traffic_kernels();
      const auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const TrafficKernel& k) {
        return k.traffic == traffic && k.width == width;
      });
      models::Figure figure =
          rate_figure(seconds_a_byte(bench_, team, arrays, *kernel, level), method_of(level, traffic, width));
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
