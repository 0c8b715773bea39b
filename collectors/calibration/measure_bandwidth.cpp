// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <optional>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/traffic_arrays.h"
#include "collectors/calibration/traffic_kernels.h"
#include "collectors/calibration/working_set.h"
#include "models/processor_facts.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Level;
using models::Scope;
using models::Traffic;
using models::Width;

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
      const TrafficLoop loop{traffic, [run = kernel->run](const TrafficArrays& part, std::uint64_t passes) {
                               Checksum checksum{};
                               run(part, passes, checksum);
                             }};
      models::Figure figure = rate_figure(
          seconds_a_byte(bench_, effort, team, arrays, loop, level, models::moved_per_requested(level, traffic)),
          method_of(level, traffic, width));
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
    for (const Level level : models::all_levels) {
      bench.progress("bandwidth of " + std::string(name(level)) +
                     (scope == Scope::one_core ? " on one core" : " on all cores"));
      bandwidths.measure(level, scope);
    }
  }
  return bandwidths.take();
}

}  // namespace crosstalk::collectors::calibration
