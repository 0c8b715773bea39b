// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/machine_roofs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "models/roofline/ceilings.h"

namespace crosstalk::models::roofline {
namespace {

// A machine's speed changes over time: kernels that a unit limits kept it busy for 99.9, 95 and 88 % of the peak of the
// same minute, and for 91, 82 and 76 % of the peak of an hour before (docs/accuracy.md, "Busy times").
constexpr double between_times = 0.1;
constexpr double most_other = 0.1;  // of a mix, that nothing is measured of
constexpr double chain_cycles = 4;  // of a floating-point operation, where its latency was not measured
constexpr const char* no_peak = "the peak of its operations is not in the calibration; run crosstalk calibrate";
constexpr std::array widest_first = {Width::avx512, Width::avx2, Width::sse, Width::scalar};

/// One figure by numbers of threads.
struct Measured {
  std::uint32_t threads = 1;
  const Figure* figure = nullptr;
};

std::optional<Estimate> estimate_of(double value, double spread, Basis basis) {
  const double part = std::clamp(std::max(spread, between_times), 0.0, 1.0);
  const auto estimate = Estimate::of(value, value * (1 - part), value * (1 + part), basis);
  return estimate && estimate->value() > 0 ? std::optional(*estimate) : std::nullopt;
}

/// The roof of so many threads among measured ones; nullopt: none was measured. `like` has all but height and threads.
std::optional<Roof> among(std::vector<Measured> measured, Roof like, RoofThreads threads, std::uint32_t cores) {
  std::erase_if(measured, [](const Measured& one) { return one.figure == nullptr || !one.figure->value; });
  std::sort(measured.begin(), measured.end(),
            [](const Measured& a, const Measured& b) { return a.threads < b.threads; });
  std::vector<Roof> roofs;
  for (const auto& [count, figure] : measured) {
    if (const auto height = estimate_of(*figure->value, figure->spread, Basis::calibrated)) {
      like.height = *height;
      like.threads = count;
      roofs.push_back(like);
    }
  }
  const std::uint32_t running = std::clamp(threads.at_once, 1U, cores);
  const auto more = std::find_if(roofs.begin(), roofs.end(), [&](const Roof& roof) { return roof.threads >= running; });
  if (roofs.empty() || (more == roofs.begin() && more->threads != running)) {
    return std::nullopt;  // only the roof of more threads is known
  }
  std::optional<Roof> found;
  if (more == roofs.end()) {
    found = running >= cores && roofs.back().threads >= cores ? std::optional(roofs.back()) : std::nullopt;
  } else if (const auto between = at_threads(more->threads == running ? *more : *(more - 1), *more, running)) {
    found = *between;
  }
  const auto part = found ? scaled(found->height, threads.part_of_one ? 1.0 / running : 1.0)
                          : Result<Estimate>(fail(ErrorCode::not_found, no_peak));
  if (!part) {
    return std::nullopt;
  }
  found->height = *part;
  found->threads = threads.counted();
  return found;
}

/// A figure that every core has for itself: if only one core or only all were measured, the other follows.
std::vector<Measured> of_each_core(std::vector<Measured> measured, std::vector<Figure>& derived, std::uint32_t cores) {
  const auto has = [&](std::uint32_t threads) -> const Figure* {
    for (const Measured& one : measured) {
      if (one.threads == threads && one.figure != nullptr && one.figure->value) {
        return one.figure;
      }
    }
    return nullptr;
  };
  const Figure* const one = has(1);
  const Figure* const all = has(cores);
  if (cores > 1 && (one == nullptr) != (all == nullptr)) {
    Figure& other = derived.emplace_back(one != nullptr ? *one : *all);
    *other.value *= one != nullptr ? cores : 1.0 / cores;
    measured.push_back({one != nullptr ? cores : 1, &other});
  }
  return measured;
}

struct MixShape {
  Mix mix;
  Traffic plain, streaming;
  double store_share;
};
constexpr std::array<MixShape, 4> shapes = {{{Mix::loads, Traffic::load, Traffic::load, 0},
                                             {Mix::two_to_one, Traffic::triad, Traffic::triad_streaming, 1.0 / 3},
                                             {Mix::one_to_one, Traffic::copy, Traffic::copy_streaming, 0.5},
                                             {Mix::stores, Traffic::store, Traffic::store_streaming, 1}}};

const MixShape& shape_of(const AccessKind& kind) {
  return *std::min_element(shapes.begin(), shapes.end(), [&](const MixShape& a, const MixShape& b) {
    return std::abs(a.store_share - kind.store_share) < std::abs(b.store_share - kind.store_share);
  });
}

Roof like_level(Level level) {
  return {
      .name = level_in_words(level), .kind = RoofKind::bandwidth, .level = level, .height = *Estimate::exact(1, {})};
}

/// By the loop's width and mix; nullopt: not measured.
std::optional<Roof> access_roof(const Machine& machine, Level level, const AccessKind& kind, RoofThreads threads) {
  const Mix mix = shape_of(kind).mix;
  if (kind.streaming && mix != Mix::loads && level == Level::memory) {
    return std::nullopt;  // these are of plain stores
  }
  for (const Width width : widest_first) {
    std::vector<Measured> measured;
    for (const AccessRate& rate : machine.accesses) {
      if (rate.level == level && rate.width == width && rate.mix == mix) {
        measured.push_back({rate.threads, &rate.bytes_per_s});
      }
    }
    Roof like = like_level(level);
    like.width = width;
    if (kind.width && width > *kind.width) {
      continue;
    }
    if (auto roof = among(std::move(measured), std::move(like), threads, cores_of(machine))) {
      return roof;
    }
  }
  return std::nullopt;
}

std::optional<Roof> traffic_roof(const Machine& machine, Level level, Traffic traffic, RoofThreads threads) {
  const std::uint32_t cores = cores_of(machine);
  std::vector<Measured> measured = {{1, machine.bandwidth_of(level, traffic, Scope::one_core)}};
  if (cores > 1) {
    measured.push_back({cores, machine.bandwidth_of(level, traffic, Scope::all_cores)});
  }
  std::vector<Figure> derived;
  derived.reserve(1);
  const bool shared = level == Level::l3 || level == Level::memory;
  return among(shared ? measured : of_each_core(measured, derived, cores), like_level(level), threads, cores);
}

/// By the traffic most like the loop's, else by loads. `requested`: of the bytes that move, those that the loop asks
/// for.
std::optional<Roof> bandwidth_roof(const Machine& machine, Level level, const AccessKind& kind, RoofThreads threads,
                                   bool requested) {
  const MixShape& shape = shape_of(kind);
  for (const Traffic traffic : {kind.streaming ? shape.streaming : shape.plain, shape.plain, Traffic::load}) {
    auto roof = traffic_roof(machine, level, traffic, threads);
    const auto height = roof && requested ? scaled(roof->height, 1 / moved_per_requested(level, traffic))
                        : roof            ? Result<Estimate>(roof->height)
                                          : Result<Estimate>(fail(ErrorCode::not_found, no_peak));
    if (height) {
      roof->height = *height;
      return roof;
    }
  }
  return std::nullopt;
}

template <class RoofOf>
std::vector<Roof> by_level(const RoofOf& roof_of) {
  std::vector<Roof> roofs;
  for (const Level level : all_levels) {
    if (auto roof = roof_of(level)) {
      roofs.push_back(std::move(*roof));
    }
  }
  return roofs;
}

std::optional<Roof> flop_roof(const Machine& machine, Width width, Precision precision, Operation operation,
                              RoofThreads threads) {
  const std::uint32_t cores = cores_of(machine);
  std::vector<Measured> measured = {{1, machine.flops_of(width, precision, operation, Scope::one_core)}};
  if (cores > 1) {
    measured.push_back({cores, machine.flops_of(width, precision, operation, Scope::all_cores)});
  }
  for (const ThreadFlops& some : machine.thread_flops) {
    if (some.width == width && some.precision == precision && some.operation == operation) {
      measured.push_back({some.threads, &some.flops_per_s});
    }
  }
  std::vector<Figure> derived;
  derived.reserve(1);
  const Roof like{.name = std::string(width_in_words(width)) + (operation == Operation::fma   ? " FMA"
                                                                : operation == Operation::mul ? " multiply"
                                                                                              : " add"),
                  .kind = RoofKind::compute,
                  .width = width,
                  .operation = operation,
                  .height = *Estimate::exact(1, {})};
  return among(of_each_core(std::move(measured), derived, cores), like, threads, cores);
}

std::optional<Roof> integer_peak(const Machine& machine, const IntegerWork& work, RoofThreads threads) {
  const std::uint32_t cores = cores_of(machine);
  std::vector<Measured> measured;
  for (const IntegerPeak& peak : machine.integers) {
    if (peak.width == work.width && peak.element == (work.element_bytes >= 8 ? Element::int64 : Element::int32) &&
        peak.operation == (work.multiplies ? Operation::mul : Operation::add)) {
      measured.push_back({peak.scope == Scope::one_core ? 1 : cores, &peak.per_s});
    }
  }
  if (measured.empty() && work.width == Width::scalar) {
    measured.push_back(
        {1, machine.rate_of(work.multiplies ? Instruction::integer_multiply : Instruction::integer_add)});
  }
  std::vector<Figure> derived;
  derived.reserve(1);
  auto roof =
      among(of_each_core(std::move(measured), derived, cores),
            {.name = "integer units", .kind = RoofKind::compute, .height = *Estimate::exact(1, {})}, threads, cores);
  if (roof && work.width != Width::scalar && work.element_bytes < 4) {
    const auto more = scaled(on_basis(roof->height, Basis::assumed), 4.0 / std::max(1U, work.element_bytes));
    return more ? (roof->height = *more, roof) : std::nullopt;
  }
  return roof;
}

/// Operations that follow each other on the same units: their sum over the sum of their times.
class InTurns {
 public:
  void add(double operations, const std::optional<Roof>& roof) {
    known_ = known_ && roof;
    if (roof) {
      sum_ += operations;
      value_ += operations / roof->height.value();
      at_low_ += operations / roof->height.low();
      at_high_ += operations / roof->height.high();
      basis_ = std::max(basis_, roof->height.basis());
      only_ = count_++ == 0 ? roof : std::nullopt;
    }
  }
  [[nodiscard]] Result<Roof> roof(const char* name, RoofThreads threads) const {
    if (!known_ || !(value_ > 0)) {
      return fail(ErrorCode::not_found, no_peak);
    }
    const double low = at_low_ > 0 && std::isfinite(at_low_) ? sum_ / at_low_ : 0;
    const auto height =
        Estimate::of(sum_ / value_, std::min(low, sum_ / value_), std::max(sum_ / at_high_, sum_ / value_), basis_);
    if (!height) {
      return tl::unexpected<Error>(height.error());
    }
    Roof roof{.name = name, .kind = RoofKind::compute, .height = *height};
    roof.threads = threads.counted();
    if (only_) {
      roof.width = only_->width;
      roof.operation = only_->operation;
    }
    return roof;
  }

 private:
  double sum_ = 0, value_ = 0, at_low_ = 0, at_high_ = 0;
  Basis basis_ = Basis::decoded;
  bool known_ = true;
  int count_ = 0;
  std::optional<Roof> only_;
};

std::optional<Roof> chain_roof(const Machine& machine, Precision precision, RoofThreads threads) {
  std::optional<Estimate> per_s;
  for (const FlopLatency& latency : machine.flop_latencies) {
    if (latency.width == Width::scalar && latency.precision == precision && latency.operation == Operation::add &&
        latency.seconds.value && *latency.seconds.value > 0) {
      per_s = estimate_of(1 / *latency.seconds.value, latency.seconds.spread, Basis::calibrated);
    }
  }
  if (const auto hz = core_hz(machine, threads.at_once); !per_s && hz) {
    const auto assumed = scaled(on_basis(*hz, Basis::assumed), 1 / chain_cycles);
    per_s = assumed ? std::optional(*assumed) : std::nullopt;
  }
  const double running = threads.running(cores_of(machine));
  const auto height = per_s ? scaled(*per_s, running) : Result<Estimate>(fail(ErrorCode::not_found, no_peak));
  return height ? std::optional(Roof{.name = "one scalar chain",
                                     .kind = RoofKind::compute,
                                     .width = Width::scalar,
                                     .operation = Operation::add,
                                     .ceiling = Ceiling::tlp,
                                     .threads = threads.counted(),
                                     .height = *height})
                : std::nullopt;
}

std::optional<Roof> widest(const Machine& machine, Precision precision, Operation operation, RoofThreads threads) {
  for (const Width width : widest_first) {
    if (auto roof = flop_roof(machine, width, precision, operation, threads)) {
      return roof;
    }
  }
  return std::nullopt;
}

}  // namespace

const char* width_in_words(Width width) {
  static constexpr std::array<const char*, 4> words = {"scalar", "SSE", "AVX2", "AVX-512"};
  return words[static_cast<std::size_t>(width)];
}

std::vector<Roof> requested_roofs(const Machine& machine, const AccessKind& kind, RoofThreads threads) {
  return by_level([&](Level level) {
    auto roof = access_roof(machine, level, kind, threads);
    return roof ? roof : bandwidth_roof(machine, level, kind, threads, true);
  });
}

std::vector<Roof> moved_roofs(const Machine& machine, const AccessKind& kind, RoofThreads threads) {
  return by_level([&](Level level) { return bandwidth_roof(machine, level, kind, threads, false); });
}

Result<Roof> compute_roof(const Machine& machine, const FlopMix& mix, RoofThreads threads) {
  const double total = mix.total();
  if (!(total > 0) || mix.other > most_other * total) {
    return fail(
        ErrorCode::not_found,
        total > 0 ? "most of its operations are divisions, roots or x87, whose peak nothing measures" : no_peak);
  }
  InTurns turns;
  for_each_kind([&](Width width, Precision precision, Operation operation) {
    const double flops = mix.of[FlopMix::index(width, precision, operation)];
    if (flops > 0) {
      turns.add(flops, flop_roof(machine, width, precision, operation, threads));
    }
  });
  return turns.roof("FP units", threads);
}

Result<Roof> integer_roof(const Machine& machine, std::span<const IntegerWork> mix, RoofThreads threads) {
  InTurns turns;
  for (const IntegerWork& work : mix) {
    if (work.operations > 0) {
      turns.add(work.operations, integer_peak(machine, work, threads));
    }
  }
  return turns.roof("integer units", threads);
}

std::vector<Roof> width_roofs(const Machine& machine, Precision precision, RoofThreads threads) {
  std::vector<Roof> roofs;
  for (const Width width : all_widths) {
    for (const Operation operation : {Operation::fma, Operation::add}) {
      if (auto roof = flop_roof(machine, width, precision, operation, threads)) {
        roofs.push_back(std::move(*roof));
        break;
      }
    }
  }
  return roofs;
}

std::vector<Roof> in_core_roofs(const Machine& machine, Precision precision, RoofThreads threads) {
  const auto with = [](std::optional<Roof> roof, std::optional<Ceiling> ceiling) {
    if (roof) {
      roof->ceiling = ceiling;
    }
    return roof;
  };
  std::vector<Roof> roofs;
  for (auto& roof : {chain_roof(machine, precision, threads),
                     with(flop_roof(machine, Width::scalar, precision, Operation::add, threads), Ceiling::ilp),
                     with(widest(machine, precision, Operation::add, threads), Ceiling::dlp),
                     with(widest(machine, precision, Operation::fma, threads), Ceiling::multiply_add)}) {
    if (roof && (roofs.empty() || roof->height.value() > roofs.back().height.value())) {
      roofs.push_back(*roof);
    }
  }
  if (!roofs.empty()) {
    roofs.back().ceiling.reset();  // the roof
  }
  return roofs;
}

std::vector<Roof> memory_ceilings(const Machine& machine, const AccessKind& kind, RoofThreads threads) {
  const auto memory_of = [&](RoofThreads some) { return bandwidth_roof(machine, Level::memory, kind, some, false); };
  auto top = memory_of(threads);
  if (!top || threads.part_of_one) {
    return top ? std::vector{*top} : std::vector<Roof>();
  }
  const std::uint32_t cores = std::min(threads.at_once, cores_of(machine));
  std::vector<MeasuredCores> measured;
  for (std::uint32_t some = 1; some < cores; some *= 2) {
    if (const auto roof = memory_of({some}); roof && roof->height.basis() == Basis::calibrated) {
      measured.push_back({some, roof->height});
    }
  }
  auto ceilings = measured.empty() ? Result<std::vector<Roof>>(std::vector<Roof>())
                                   : active_core_ceilings(std::move(measured), cores);
  std::vector<Roof> roofs = ceilings ? std::move(*ceilings) : std::vector<Roof>();
  std::erase_if(roofs, [&](const Roof& roof) { return roof.height.value() >= top->height.value(); });
  for (Roof& roof : roofs) {
    roof.threads = top->threads;
  }
  roofs.push_back(std::move(*top));
  return roofs;
}

std::vector<Roof> sparse_roofs(const Machine& machine, RoofThreads threads) {
  std::vector<Roof> roofs;
  const std::uint32_t cores = cores_of(machine);
  for (const SparseRoof& one : machine.sparse_roofs) {
    const std::string name = sparse_roof_name(one.matrix, one.vector);
    if (std::any_of(roofs.begin(), roofs.end(), [&](const Roof& roof) { return roof.name == name; })) {
      continue;
    }
    std::vector<Measured> measured;
    for (const SparseRoof& other : machine.sparse_roofs) {
      if (other.matrix == one.matrix && other.vector == one.vector) {
        measured.push_back({other.scope == Scope::one_core ? 1 : cores, &other.bytes_per_s});
      }
    }
    Roof like = like_level(one.matrix);
    like.name = name;
    if (auto roof = among(std::move(measured), std::move(like), threads, cores)) {
      roofs.push_back(std::move(*roof));
    }
  }
  std::stable_sort(roofs.begin(), roofs.end(),
                   [](const Roof& a, const Roof& b) { return a.height.value() > b.height.value(); });
  return roofs;
}

Result<Band> sparse_band(const Machine& machine, Level level, RoofThreads threads) {
  const std::uint32_t cores = cores_of(machine);
  std::optional<Band> found;
  for (const SparseBand& of : machine.sparse_bands) {
    std::vector<Measured> worst, best;
    for (const SparseBand& band : machine.sparse_bands) {
      if (band.matrix == level && of.matrix == level && band.row_nonzeros == of.row_nonzeros) {
        worst.push_back({band.scope == Scope::one_core ? 1 : cores, &band.worst});
        best.push_back({band.scope == Scope::one_core ? 1 : cores, &band.best});
      }
    }
    const auto low = among(std::move(worst), like_level(level), threads, cores);
    const auto high = among(std::move(best), like_level(level), threads, cores);
    if (low && high) {
      found = Band{level, found ? least(found->worst, low->height) : low->height,
                   found ? greatest(found->best, high->height) : high->height};
    }
  }
  return found ? Result<Band>(*found)
               : fail(ErrorCode::not_found, std::string("no pair of matrices in ") + level_in_words(level) +
                                                " is in the calibration; run crosstalk calibrate");
}

Result<Estimate> estimate_of_figure(const Figure* figure, double least_spread) {
  if (figure == nullptr || !figure->value) {
    return fail(ErrorCode::not_found, figure != nullptr && !figure->refused.empty()
                                          ? figure->refused
                                          : "it is not in the calibration; run crosstalk calibrate");
  }
  const double part = std::clamp(std::max(figure->spread, least_spread), 0.0, 1.0);
  return Estimate::of(*figure->value, *figure->value * (1 - part), *figure->value * (1 + part), Basis::calibrated);
}

Result<Estimate> core_hz(const Machine& machine, std::uint32_t threads) {
  const Figure& one = machine.frequency.one_core_hz;
  const Figure& all = machine.frequency.all_cores_hz;
  const Figure& nearest = threads <= 1 && one.value ? one : all.value ? all : one;
  if (!nearest.value) {
    return fail(ErrorCode::not_found, "the core's frequency is not in the calibration; run crosstalk calibrate");
  }
  const bool between = threads > 1 && threads < cores_of(machine) && one.value && all.value;
  const double low = between ? std::min(*one.value, *all.value) : *nearest.value;
  const double high = between ? std::max(*one.value, *all.value) : *nearest.value;
  const double spread = std::clamp(std::max({one.spread, all.spread, 0.02}), 0.0, 1.0);
  return Estimate::of(*nearest.value, low * (1 - spread), high * (1 + spread), Basis::calibrated);
}

}  // namespace crosstalk::models::roofline
