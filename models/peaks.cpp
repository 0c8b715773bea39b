// SPDX-License-Identifier: Apache-2.0
#include "models/peaks.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <set>
#include <utility>

namespace crosstalk::models {
namespace {

std::optional<double> part_of(std::optional<double> one, std::optional<double> all, double cores, double threads,
                              bool shared) {
  const double running = std::clamp(threads, 1.0, cores);
  if (cores <= 1) {
    return one ? one : all;
  }
  if (shared && (!one || !all)) {
    const std::optional<double> end = running <= 1 ? one : running >= cores ? all : std::nullopt;
    return end ? std::optional(*end / running) : std::nullopt;
  }
  if (!one || !all) {
    return one ? one : all ? std::optional(*all / cores) : std::nullopt;
  }
  if (shared) {
    return std::min(*one, *all / running);
  }
  return *one + (*all / cores - *one) * (running - 1) / (cores - 1);
}

/// The traffic whose share of stores is nearest.
Traffic nearest_traffic(double store_share, bool streaming) {
  struct Shape {
    Traffic plain, streaming;
    double store_share;
  };
  static constexpr std::array<Shape, 4> shapes = {{{Traffic::load, Traffic::load, 0},
                                                   {Traffic::triad, Traffic::triad_streaming, 1.0 / 3},
                                                   {Traffic::copy, Traffic::copy_streaming, 0.5},
                                                   {Traffic::store, Traffic::store_streaming, 1}}};
  const auto nearest = std::min_element(shapes.begin(), shapes.end(), [store_share](const Shape& a, const Shape& b) {
    return std::abs(a.store_share - store_share) < std::abs(b.store_share - store_share);
  });
  return streaming ? nearest->streaming : nearest->plain;
}

const Figure* measured(const Figure* figure) { return figure != nullptr && figure->value ? figure : nullptr; }

/// The bandwidth of that kind of traffic; else the best of all kinds.
const Figure* bandwidth(const Machine& machine, Level level, Traffic traffic, Scope scope) {
  const Figure* exact = measured(machine.bandwidth_of(level, traffic, scope));
  return exact != nullptr ? exact : machine.peak_bandwidth(level, scope);
}

constexpr std::array<std::pair<Unit, Level>, 4> unit_levels = {
    {{Unit::memory, Level::memory}, {Unit::l3, Level::l3}, {Unit::l2, Level::l2}, {Unit::l1d, Level::l1d}}};

constexpr double most_other = 0.1;  // of a mix, that nothing is measured of

/// The refusal of the first figure without a value; empty: each has one, or is not in the file.
std::string reason_of(std::initializer_list<const Figure*> figures) {
  for (const Figure* figure : figures) {
    if (figure != nullptr && !figure->value) {
      return figure->refused;
    }
  }
  return "";
}

std::string why_no_flops(const Machine& machine, const FlopMix& mix) {
  if (mix.other > most_other * mix.total()) {
    return "most of its operations (divisions, roots and the like) are not calibrated";
  }
  std::string reason;
  for_each_kind([&](Width width, Precision precision, Operation operation) {
    if (reason.empty() && mix.of[FlopMix::index(width, precision, operation)] > 0) {
      reason = reason_of({machine.flops_of(width, precision, operation, Scope::one_core),
                          machine.flops_of(width, precision, operation, Scope::all_cores)});
    }
  });
  return reason;
}

bool has_level(const Machine& machine, Level level) {
  return level == Level::memory || machine.cache_of(level == Level::l1d ? 1 : level == Level::l2 ? 2 : 3) != nullptr;
}

}  // namespace

std::uint32_t cores_of(const Machine& machine) {
  std::set<std::uint32_t> cores;
  for (const Processor& processor : machine.processors) {
    cores.insert(processor.core);
  }
  return std::max<std::uint32_t>(1, static_cast<std::uint32_t>(cores.size()));
}

void FlopMix::add(const FlopMix& more, double times) {
  for (std::size_t i = 0; i < of.size(); ++i) {
    of[i] += more.of[i] * times;
  }
  other += more.other * times;
}

double FlopMix::total() const {
  double sum = other;
  for (const double flops : of) {
    sum += flops;
  }
  return sum;
}

double FlopMix::of_width(Width width) const {
  double sum = 0;
  for_each_kind([&](Width w, Precision p, Operation o) { sum += w == width ? of[index(w, p, o)] : 0; });
  return sum;
}

double FlopMix::of_operation(Operation operation) const {
  double sum = 0;
  for_each_kind([&](Width w, Precision p, Operation o) { sum += o == operation ? of[index(w, p, o)] : 0; });
  return sum;
}

double FlopMix::of_precision(Precision precision) const {
  double sum = 0;
  for_each_kind([&](Width w, Precision p, Operation o) { sum += p == precision ? of[index(w, p, o)] : 0; });
  return sum;
}

Peak peak_of_thread(const Figure* one_core, const Figure* all_cores, double cores, double threads, bool shared) {
  const auto value = [](const Figure* figure) { return figure != nullptr ? figure->value : std::nullopt; };
  const auto promised = [](const Figure* figure) { return figure != nullptr ? figure->theoretical : std::nullopt; };
  const auto spread = [](const Figure* figure) { return measured(figure) != nullptr ? figure->spread : 0; };
  Peak peak;
  peak.effective = part_of(value(one_core), value(all_cores), cores, threads, shared);
  peak.theoretical = part_of(promised(one_core), promised(all_cores), cores, threads, shared);
  peak.spread = std::max(spread(one_core), spread(all_cores));
  return peak;
}

Peak peak_of_mix(const Machine& machine, const FlopMix& mix, double threads) {
  const double total = mix.total();
  if (total <= 0 || mix.other > most_other * total) {
    return {};
  }
  double known = 0;
  std::optional<double> effective_s = 0.0;
  std::optional<double> theoretical_s = 0.0;
  double spread = 0;
  for_each_kind([&](Width width, Precision precision, Operation operation) {
    const double flops = mix.of[FlopMix::index(width, precision, operation)];
    if (flops <= 0) {
      return;
    }
    known += flops;
    const Peak peak = peak_of_thread(machine.flops_of(width, precision, operation, Scope::one_core),
                                     machine.flops_of(width, precision, operation, Scope::all_cores), cores_of(machine),
                                     threads, false);
    const auto add = [flops](std::optional<double>& to, const std::optional<double>& rate) {
      to = to && rate && *rate > 0 ? std::optional(*to + flops / *rate) : std::nullopt;
    };
    add(effective_s, peak.effective);
    add(theoretical_s, peak.theoretical);
    spread = std::max(spread, peak.spread);
  });
  const auto rate = [known](const std::optional<double>& seconds) {
    return seconds && *seconds > 0 ? std::optional(known / *seconds) : std::nullopt;
  };
  return {rate(effective_s), rate(theoretical_s), true, spread};
}

Peak peak_of_machine(const Machine& machine, Precision precision, double threads) {
  return peak_of_thread(machine.peak_flops(precision, Scope::one_core), machine.peak_flops(precision, Scope::all_cores),
                        cores_of(machine), threads, false);
}

Peaks peaks_of(const Machine& machine, const Demand& demand) {
  Peaks peaks;
  const Traffic traffic = nearest_traffic(demand.store_share, demand.streaming);
  for (const auto& [unit, level] : unit_levels) {
    const bool shared = level == Level::memory || level == Level::l3;
    peaks[unit] =
        peak_of_thread(bandwidth(machine, level, traffic, Scope::one_core),
                       bandwidth(machine, level, traffic, Scope::all_cores), cores_of(machine), demand.threads, shared);
    peaks[unit].exists = has_level(machine, level);
  }
  peaks[Unit::fpu] = peak_of_mix(machine, demand.flops, demand.threads);
  return peaks;
}

std::string why_no_peak(const Machine& machine, Unit unit, const Demand& demand) {
  std::string reason = unit == Unit::fpu ? why_no_flops(machine, demand.flops) : "";
  const Traffic traffic = nearest_traffic(demand.store_share, demand.streaming);
  for (const auto& [of, level] : unit_levels) {
    if (of == unit) {
      reason = reason_of({machine.bandwidth_of(level, traffic, Scope::one_core),
                          machine.bandwidth_of(level, traffic, Scope::all_cores)});
    }
  }
  return "its peak is not in the calibration" + (reason.empty() ? reason : ": " + reason);
}

}  // namespace crosstalk::models
