// SPDX-License-Identifier: Apache-2.0
// Frequency, chains and rates of instructions: measurements without memory beyond the first level.
#include <cpuid.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "base/random.h"
#include "collectors/calibration/bench.h"
#include "collectors/calibration/core_kernels.h"
#include "collectors/calibration/flop_kernels.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Chain;
using models::Width;

std::string in_tries(const std::string& what, const Effort& effort) {
  return what + ", best of tries of " + std::to_string(effort.try_ns / 1000) + " us";
}

/// Returns the counter's own rate; nullopt if it may stop or change its rate with the processor's.
std::optional<double> tsc_frequency() {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr std::uint32_t power_management = 0x80000007, invariant = 1U << 8U;
  if (__get_cpuid(power_management, &eax, &ebx, &ecx, &edx) == 0 || (edx & invariant) == 0) {
    return std::nullopt;
  }
  std::array<double, 5> rates{};
  for (double& rate : rates) {
    const std::uint64_t begin_ns = monotonic_ns();
    const std::uint64_t begin = __rdtsc();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::uint64_t ticks = __rdtsc() - begin;
    rate = static_cast<double>(ticks) / static_cast<double>(monotonic_ns() - begin_ns);
  }
  std::sort(rates.begin(), rates.end());
  constexpr double per_ns = 1e9;
  return rates[rates.size() / 2] * per_ns;
}

std::optional<double> highest_allowed(std::uint32_t cpu) {
  constexpr double kilo = 1e3;
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cpufreq/cpuinfo_max_freq");
  double khz = 0;
  return file >> khz && khz > 0 ? std::optional(khz * kilo) : std::nullopt;
}

/// Cycles a second of a chain of additions, one a cycle, on all of `team`.
models::Figure frequency_of(Bench& bench, Team& team, const std::string& method) {
  const Effort effort = bench.next_figure();
  const ChainKernel& chain = chain_of(Chain::add);
  const std::uint64_t rounds = rounds_for(effort, [&](std::uint64_t n) { chain.run(n); });
  const auto links = static_cast<double>(rounds * unrolled);
  return rate_figure(collect(effort,
                             [&] {
                               // Seconds of one core, not of all together.
                               return seconds_together(team, links / team.size(), [&](unsigned) { chain.run(rounds); });
                             }),
                     in_tries(method, effort));
}

/// The same, each time right after multiply-adds of `width`: some processors stay slower for a millisecond.
models::Figure frequency_after(Bench& bench, Width width) {
  const std::string method = "as one_core, each time right after multiply-adds of that width";
  const auto kernels = flop_kernels();
  const auto kernel = std::find_if(kernels.begin(), kernels.end(), [&](const FlopKernel& k) {
    return k.width == width && k.operation == models::Operation::fma;
  });
  if (!is_supported(*kernel)) {
    return refused(no_such_instructions, method);
  }
  Effort brief = bench.next_figure();
  brief.try_ns /= 10;
  const ChainKernel& chain = chain_of(Chain::add);
  const FlopOperands operands{};
  alignas(64) std::array<unsigned char, flop_accumulators * accumulator_stride> accumulators{};
  std::uint64_t heavy = 0, rounds = 0;
  bench.one.run([&](unsigned) {
    heavy = rounds_for(bench.effort(), [&](std::uint64_t n) { kernel->run(n, operands, accumulators.data()); });
    rounds = rounds_for(brief, [&](std::uint64_t n) { chain.run(n); });
  });
  const auto links = static_cast<double>(rounds * unrolled);
  return rate_figure(collect(brief,
                             [&] {
                               double seconds = 0;
                               const TeamTime time = bench.one.run([&](unsigned) {
                                 kernel->run(heavy, operands, accumulators.data());
                                 seconds = seconds_of([&] { chain.run(rounds); });
                               });
                               return Trial{seconds / links, time.disturbed};
                             }),
                     in_tries(method, brief));
}

/// Seconds for each of `count` in loops of `run`, on one core.
template <class Run>
Tries seconds_each(Bench& bench, Run run) {
  const Effort effort = bench.next_figure();
  std::uint64_t rounds = 0;
  bench.one.run([&](unsigned) { rounds = rounds_for(effort, [&](std::uint64_t n) { run(n); }); });
  return collect(effort, [&] {
    const TeamTime time = bench.one.run([&](unsigned) { run(rounds); });
    return Trial{time.longest_s / static_cast<double>(rounds * unrolled), time.disturbed};
  });
}

/// Measures the cost of a wrong prediction: half of random branches are predicted wrongly, and none of branches that
/// always go the same way.
models::Figure misprediction(Bench& bench) {
  constexpr std::size_t count = std::size_t{1} << 16;  // more than a processor learns by heart
  std::vector<unsigned char> random(count), never(count, 0), always(count, 1);
  std::uint64_t state = random_state(1, 1);
  for (unsigned char& byte : random) {
    byte = static_cast<unsigned char>(next_random(state) >> 63U);
  }
  const auto time = [&](const std::vector<unsigned char>& bytes) {
    return bench.one.run([&](unsigned) { count_by_branches(bytes); });
  };
  return time_figure(collect(bench.next_figure(),
                             [&] {
                               const TeamTime a = time(never), b = time(always), mixed = time(random);
                               const double predicted_s = (a.longest_s + b.longest_s) / 2;
                               return Trial{(mixed.longest_s - predicted_s) / (count / 2.0),
                                            a.disturbed || b.disturbed || mixed.disturbed};
                             }),
                     "a branch on each of 65536 random bits against one on equal bits, half of them mispredicted");
}

}  // namespace

models::Frequency measure_frequency(Bench& bench) {
  bench.progress("frequency");
  const std::string method = "chain of dependent additions, one a cycle";
  models::Frequency frequency;
  frequency.tsc_hz = tsc_frequency();
  frequency.nominal_max_hz = highest_allowed(bench.cores.back());
  frequency.one_core_hz = frequency_of(bench, bench.one, method);
  frequency.all_cores_hz = frequency_of(bench, bench.all, method + ", of the slowest core");
  frequency.after_avx2_hz = frequency_after(bench, Width::avx2);
  frequency.after_avx512_hz = frequency_after(bench, Width::avx512);
  return frequency;
}

std::vector<models::InstructionRate> measure_instructions(Bench& bench) {
  bench.progress("integer instructions and branches");
  std::vector<models::InstructionRate> rates;
  for (const InstructionKernel& kernel : instruction_kernels()) {
    rates.push_back(
        {kernel.instruction, rate_figure(seconds_each(bench, kernel.run),
                                         in_tries("16 instructions in a loop, independent", bench.effort()))});
  }
  return rates;
}

std::vector<models::ChainTime> measure_chains(Bench& bench) {
  bench.progress("chains of dependent instructions");
  std::vector<models::ChainTime> chains;
  for (const ChainKernel& kernel : chain_kernels()) {
    chains.push_back({kernel.chain, time_figure(seconds_each(bench, kernel.run),
                                                in_tries("16 links in a loop, data in L1D", bench.effort()))});
  }
  chains.push_back({Chain::branch_mispredicted, misprediction(bench)});
  return chains;
}

}  // namespace crosstalk::collectors::calibration
