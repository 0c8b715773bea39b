// SPDX-License-Identifier: Apache-2.0
#include "models/roofline/ceilings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "models/words.h"

namespace crosstalk::models::roofline {
namespace {

constexpr std::uint32_t most_mix_ceilings = 64;
constexpr const char* no_bandwidth = "no bandwidth was measured; run crosstalk calibrate";

Result<void> check_core(const CoreFigures& core) {
  auto checked = check_positive({{"the number of cores", static_cast<double>(core.cores)},
                                 {"the number of threads a core", static_cast<double>(core.threads_per_core)},
                                 {"the number of lanes", core.lanes},
                                 {"the cycles from vector to vector", core.cycles_per_vector}});
  if (checked && !(core.latency_cycles >= 1 && std::isfinite(core.latency_cycles))) {
    checked = fail(ErrorCode::invalid_argument,
                   "the latency of an operation is " + figure(core.latency_cycles) + " cycles; it must be at least 1");
  }
  constexpr std::uint64_t most_threads = std::numeric_limits<std::uint32_t>::max();
  if (checked && static_cast<std::uint64_t>(core.cores) * core.threads_per_core > most_threads) {
    checked =
        fail(ErrorCode::invalid_argument, "the cores have more than " + std::to_string(most_threads) + " threads");
  }
  return checked ? check_positive({NamedEstimate{"the frequency", core.hz}}) : checked;
}

Roof compute_roof(std::string name, Ceiling ceiling, std::uint32_t threads, const Estimate& height) {
  return {.name = std::move(name), .ceiling = ceiling, .threads = threads, .height = height};
}

/// cores x hz x flops_per_cycle.
Result<Roof> in_core_ceiling(const char* name, Ceiling ceiling, const CoreFigures& core, double flops_per_cycle) {
  if (auto checked = check_core(core); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  auto height = scaled(core.hz, core.cores * flops_per_cycle);
  if (!height) {
    return tl::unexpected<Error>(height.error());
  }
  return compute_roof(name, ceiling, core.cores * core.threads_per_core, *height);
}

Result<Roof> part_of_roof(const Roof& roof, std::string name, Ceiling ceiling, double part) {
  auto height = scaled(roof.height, part);
  if (!height) {
    return tl::unexpected<Error>(height.error());
  }
  Roof lower = roof;
  lower.name = std::move(name);
  lower.ceiling = ceiling;
  lower.height = *height;
  return lower;
}

/// "1/4" of 0.25 and "3/8" of 3 of 8.
std::string fraction(std::uint32_t part, std::uint32_t whole) {
  const std::uint32_t common = std::max(1U, std::gcd(part, whole));
  return std::to_string(part / common) + "/" + std::to_string(whole / common);
}

const char* step_in_words(Ceiling step) {
  switch (step) {
    case Ceiling::one_socket:
      return "one socket";
    case Ceiling::affinity:
      return "memory affinity";
    case Ceiling::software_prefetch:
      return "software prefetch";
    case Ceiling::snoop_filter:
      return "snoop filter";
    default:
      return nullptr;
  }
}

/// Adds a ceiling unless it does not raise the bandwidth.
Result<void> add_if_higher(std::vector<Roof>& ceilings, Roof roof) {
  if (auto checked = check_roof(roof, RoofKind::bandwidth); !checked) {
    return checked;
  }
  if (ceilings.empty() || roof.height.value() > ceilings.back().height.value()) {
    ceilings.push_back(std::move(roof));
  }
  return {};
}

}  // namespace

Result<Roof> tlp_ceiling(const CoreFigures& core) {
  return in_core_ceiling("TLP", Ceiling::tlp, core, std::min(1.0, core.threads_per_core / core.latency_cycles));
}

Result<Roof> ilp_ceiling(const CoreFigures& core) { return in_core_ceiling("ILP", Ceiling::ilp, core, 1); }

Result<Roof> dlp_ceiling(const CoreFigures& core) {
  return in_core_ceiling("DLP", Ceiling::dlp, core, core.lanes / core.cycles_per_vector);
}

Result<Roof> multiply_add_peak(const CoreFigures& core) {
  return in_core_ceiling("peak", Ceiling::multiply_add, core, 2 * core.lanes / core.cycles_per_vector);
}

Result<Roof> single_issue_peak(const CoreFigures& core) {
  return in_core_ceiling("peak", Ceiling::single_issue, core, 1);
}

Result<std::vector<Roof>> in_core_ceilings(const CoreFigures& core) {
  std::vector<Roof> ceilings;
  for (const auto formula : {tlp_ceiling, ilp_ceiling, dlp_ceiling, multiply_add_peak}) {
    auto ceiling = formula(core);
    if (!ceiling) {
      return tl::unexpected<Error>(ceiling.error());
    }
    ceilings.push_back(std::move(*ceiling));
  }
  return ceilings;
}

Result<Roof> mix_ceiling(const CoreFigures& core, const IssueFigures& issue, double fp_share, const Roof& peak) {
  auto checked = check_share({"the floating-point part of the instructions", fp_share});
  checked = checked ? check_positive({{"the floating-point part of the instructions", fp_share},
                                      {"the issue width", issue.issue_width},
                                      {"the operations of an instruction", issue.flops_per_instruction}})
                    : checked;
  checked = checked ? check_not_negative({{"the stall cycles", issue.stall_cycles}}) : checked;
  checked = checked ? check_roof(peak, RoofKind::compute) : checked;
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  const double cycles = 1 / issue.issue_width + fp_share * issue.stall_cycles;  // an instruction
  auto ceiling = in_core_ceiling("mix", Ceiling::mix, core, fp_share * issue.flops_per_instruction / cycles);
  if (ceiling) {
    ceiling->name = percent(fp_share) + " FP";
    ceiling->threads = peak.threads;
    ceiling->height = least(ceiling->height, peak.height);
  }
  return ceiling;
}

Result<std::vector<Roof>> mix_ceilings(const CoreFigures& core, const IssueFigures& issue, std::uint32_t count,
                                       const Roof& peak) {
  if (count == 0 || count > most_mix_ceilings) {
    return fail(ErrorCode::invalid_argument, std::to_string(count) + " ceilings by mix are asked for; ask for 1 to 64");
  }
  std::vector<Roof> ceilings;
  for (std::uint32_t k = 0; k < count; ++k) {
    auto ceiling = mix_ceiling(core, issue, std::exp2(-static_cast<double>(k)), peak);
    if (!ceiling) {
      return tl::unexpected<Error>(ceiling.error());
    }
    ceilings.push_back(std::move(*ceiling));
  }
  return ceilings;
}

Result<std::vector<Roof>> imbalance_ceilings(ImbalanceOrder order, const Roof& tlp, const Roof& peak) {
  const Roof& base = order == ImbalanceOrder::first ? tlp : peak;
  auto checked = check_roof(base, RoofKind::compute);
  checked = checked ? check_positive({{"the number of threads", static_cast<double>(base.threads)}}) : checked;
  if (!checked) {
    return tl::unexpected<Error>(checked.error());
  }
  std::vector<Roof> ceilings;
  for (std::uint64_t divisor = 2; divisor / 2 < base.threads; divisor *= 2) {
    // A number of threads that is no power of two ends with the sequential ceiling, too.
    const auto parts = static_cast<std::uint32_t>(std::min<std::uint64_t>(divisor, base.threads));
    auto ceiling = part_of_roof(base, fraction(1, parts) + " of the threads", Ceiling::balance, 1.0 / parts);
    if (!ceiling) {
      return tl::unexpected<Error>(ceiling.error());
    }
    ceilings.push_back(std::move(*ceiling));
  }
  return ceilings;
}

Result<double> utilisation(std::span<const double> seconds_by_thread) {
  double total = 0, most = 0;
  for (const double seconds : seconds_by_thread) {
    if (auto checked = check_not_negative({{"a thread's time", seconds}}); !checked) {
      return tl::unexpected<Error>(checked.error());
    }
    total += seconds;
    most = std::max(most, seconds);
  }
  if (most == 0 || !std::isfinite(total)) {
    return fail(ErrorCode::not_found,
                most == 0 ? "no thread spent time in the loop" : "the threads' times are too large");
  }
  return total / most;
}

Result<Roof> measured_balance_ceiling(const Roof& peak, std::span<const double> seconds_by_thread) {
  auto used = utilisation(seconds_by_thread);
  if (!used) {
    return tl::unexpected<Error>(used.error());
  }
  if (auto checked = check_roof(peak, RoofKind::compute); !checked) {
    return tl::unexpected<Error>(checked.error());
  }
  if (seconds_by_thread.size() != peak.threads) {
    return fail(ErrorCode::invalid_argument,
                "the roof " + peak.name + " is for " + std::to_string(peak.threads) + " threads, the times are of " +
                    std::to_string(seconds_by_thread.size()) + "; take the roof for that many");
  }
  return part_of_roof(peak, "measured balance", Ceiling::balance, *used / peak.threads);
}

Result<std::vector<Roof>> bandwidth_ceilings(std::vector<MeasuredStep> steps, std::uint32_t threads) {
  std::stable_sort(steps.begin(), steps.end(),
                   [](const MeasuredStep& a, const MeasuredStep& b) { return a.step < b.step; });
  if (steps.empty()) {
    return fail(ErrorCode::not_found, no_bandwidth);
  }
  std::vector<Roof> ceilings;
  for (const MeasuredStep& step : steps) {
    const char* name = step_in_words(step.step);
    if (name == nullptr) {
      return fail(ErrorCode::invalid_argument,
                  "an in-core ceiling stands among bandwidths; give steps of bandwidth only");
    }
    auto added = add_if_higher(ceilings, {.name = name,
                                          .kind = RoofKind::bandwidth,
                                          .level = Level::memory,
                                          .ceiling = step.step,
                                          .threads = threads,
                                          .height = step.bytes_per_s});
    if (!added) {
      return tl::unexpected<Error>(added.error());
    }
  }
  return ceilings;
}

Result<std::vector<Roof>> active_core_ceilings(std::vector<MeasuredCores> measured, std::uint32_t cores) {
  std::stable_sort(measured.begin(), measured.end(),
                   [](const MeasuredCores& a, const MeasuredCores& b) { return a.active < b.active; });
  if (measured.empty()) {
    return fail(ErrorCode::not_found, no_bandwidth);
  }
  std::vector<Roof> ceilings;
  for (const MeasuredCores& some : measured) {
    if (some.active == 0 || some.active > cores) {
      return fail(ErrorCode::invalid_argument, std::to_string(some.active) + " active cores of " +
                                                   std::to_string(cores) + " cannot be; give 1 to all cores");
    }
    auto added = add_if_higher(ceilings, {.name = fraction(some.active, cores) + " of the cores",
                                          .kind = RoofKind::bandwidth,
                                          .level = Level::memory,
                                          .ceiling = Ceiling::active_cores,
                                          .threads = cores,
                                          .height = some.bytes_per_s});
    if (!added) {
      return tl::unexpected<Error>(added.error());
    }
  }
  return ceilings;
}

Result<Estimate> bytes_in_flight(const Estimate& latency_s, const Estimate& bytes_per_s) {
  return product(latency_s, bytes_per_s);
}

Result<Estimate> bandwidth_of(const Estimate& in_flight, const Estimate& latency_s, const Estimate& bytes_per_s) {
  auto sustained = quotient(in_flight, latency_s, "the latency");
  return sustained ? Result<Estimate>(least(*sustained, bytes_per_s)) : sustained;
}

}  // namespace crosstalk::models::roofline
