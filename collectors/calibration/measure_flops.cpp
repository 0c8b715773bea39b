// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/flop_kernels.h"
#include "models/processor_facts.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Precision;
using models::Scope;

template <class Real>
void fill(unsigned char (&vector)[64], Real value) {
  for (std::size_t at = 0; at < sizeof(vector); at += sizeof(Real)) {
    std::memcpy(vector + at, &value, sizeof(Real));
  }
}

/// Returns operands that keep the accumulators' values, far from denormal numbers, which are slow.
FlopOperands neutral(Precision precision) {
  FlopOperands operands;
  if (precision == Precision::double_precision) {
    fill(operands.multiplier, 1.0);
    fill(operands.addend, 1.0);
  } else {
    fill(operands.multiplier, 1.0F);
    fill(operands.addend, 1.0F);
  }
  return operands;
}

models::Figure peak_of(Bench& bench, const FlopKernel& kernel, Team& team) {
  const FlopOperands operands = neutral(kernel.precision);
  const auto run = [&](std::uint64_t rounds) {
    alignas(64) std::array<unsigned char, flop_accumulators * accumulator_stride> accumulators{};
    kernel.run(rounds, operands, accumulators.data());
  };
  const Effort effort = bench.next_figure();
  std::uint64_t rounds = 0;
  bench.one.run([&](unsigned) { rounds = rounds_for(effort, run); });
  const auto flops = static_cast<double>(flops_of(kernel, rounds));
  return rate_figure(
      collect(effort, [&] { return seconds_together(team, flops, [&](unsigned) { run(rounds); }); }),
      "12 independent chains in registers, best of tries of " + std::to_string(effort.try_ns / 1000) + " us");
}

std::optional<double> theory(const Bench& bench, const FlopKernel& kernel, Scope scope) {
  const models::CoreFacts* const facts = models::facts_of(bench.machine.identity);
  const models::Frequency& frequency = bench.machine.frequency;
  const auto hz = scope == Scope::one_core ? frequency.one_core_hz.value : frequency.all_cores_hz.value;
  if (facts == nullptr || !hz) {
    return std::nullopt;
  }
  const double cores = scope == Scope::one_core ? 1 : bench.all.size();
  return models::theoretical_flops(*facts, kernel.width, kernel.precision, kernel.operation, *hz * cores);
}

}  // namespace

std::size_t count_thread_flops(std::size_t cores) {
  const auto kernels = flop_kernels();
  const auto supported =
      std::count_if(kernels.begin(), kernels.end(), [](const FlopKernel& kernel) { return is_supported(kernel); });
  return (thread_counts(cores).size() - std::min<std::size_t>(cores, 2)) * static_cast<std::size_t>(supported);
}

std::vector<models::ThreadFlops> measure_thread_flops(Bench& bench) {
  std::vector<models::ThreadFlops> peaks;
  for (const std::uint32_t threads : thread_counts(bench.cores.size())) {
    if (threads == 1 || threads == bench.cores.size()) {
      continue;  // measured by scope
    }
    bench.progress("floating point on " + std::to_string(threads) + " cores");
    Team team(cores_for(bench, threads));
    for (const FlopKernel& kernel : flop_kernels()) {
      if (is_supported(kernel)) {
        peaks.push_back({kernel.width, kernel.precision, kernel.operation, threads, peak_of(bench, kernel, team)});
      }
    }
  }
  return peaks;
}

std::vector<models::FlopPeak> measure_flops(Bench& bench) {
  std::vector<models::FlopPeak> peaks;
  for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
    bench.progress(scope == Scope::one_core ? "floating point on one core" : "floating point on all cores");
    for (const FlopKernel& kernel : flop_kernels()) {
      if (is_supported(kernel)) {
        peaks.push_back(
            {kernel.width, kernel.precision, kernel.operation, scope, peak_of(bench, kernel, bench.team(scope))});
        peaks.back().flops_per_s.theoretical = theory(bench, kernel, scope);
      }
    }
  }
  return peaks;
}

}  // namespace crosstalk::collectors::calibration
