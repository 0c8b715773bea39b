// SPDX-License-Identifier: Apache-2.0
// One kernel of the calibration for a while, with the average rate: to be compared with the same kernel of another
// program at the same time.
#include <sys/prctl.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/memory_block.h"
#include "collectors/calibration/stream_code.h"
#include "workload.h"

namespace {

namespace calibration = crosstalk::collectors::calibration;
namespace models = crosstalk::models;
using workload::Flags;

/// A clock's reading: CLOCK_MONOTONIC, or the thread's CPU time, which leaves out what other programs and guests took.
double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

clockid_t clock_of(const Flags& flags) {
  return flags.word("--clock") == "cpu" ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
}

template <class Enum>
Enum chosen(const Flags& flags, const std::string& flag) {
  const auto names = models::names<Enum>();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == flags.word(flag)) {
      return static_cast<Enum>(i);
    }
  }
  return Enum{};
}

template <class Enum>
std::vector<std::string> words() {
  const auto names = models::names<Enum>();
  return {names.begin(), names.end()};
}

/// Rounds a second of `run(rounds)`, on average over --seconds, in calls of a hundredth of it. Before, it runs for
/// --warm: a processor that was idle is slow at first.
template <class Run>
double rounds_per_s(const Flags& flags, Run run) {
  constexpr double part = 0.01;
  const clockid_t clock = clock_of(flags);
  const double seconds = flags.real("--seconds");
  for (const double begin = seconds_of(clock); seconds_of(clock) - begin < flags.real("--warm");) {
    run(1);
  }
  std::uint64_t rounds = 1;
  for (double took = 0; took < part * seconds; rounds *= 2) {
    const double begin = seconds_of(clock);
    run(rounds);
    took = seconds_of(clock) - begin;
  }
  std::uint64_t done = 0;
  const double begin = seconds_of(clock);
  while (seconds_of(clock) - begin < seconds) {
    run(rounds);
    done += rounds;
  }
  return static_cast<double>(done) / (seconds_of(clock) - begin);
}

double bytes_per_s(const Flags& flags) {
  const calibration::StreamShape shape{chosen<models::Width>(flags, "--width"), chosen<models::Mix>(flags, "--mix"), 0};
  const auto loop = calibration::StreamLoop::make(shape);
  const models::Traffic traffic = calibration::traffic_of(shape.mix);
  const auto total = static_cast<std::uint64_t>(flags.real("--kib") * 1024);
  const std::uint64_t each =
      total / calibration::arrays_of(traffic) / calibration::traffic_round_bytes * calibration::traffic_round_bytes;
  constexpr std::uint64_t stagger = 1344;  // as the calibration has it
  const auto memory = calibration::MemoryBlock::map(total + 3 * stagger + calibration::traffic_round_bytes);
  if (!loop || !memory || each == 0) {
    flags.refuse("the loop cannot be made");
  }
  const auto array = [&](std::uint64_t number) {
    return reinterpret_cast<double*>(memory->data() + number * (each + stagger));
  };
  calibration::TrafficArrays arrays;
  arrays.bytes = each;
  arrays.a = array(0);
  arrays.b = array(traffic == models::Traffic::load ? 0 : 1);
  arrays.c = array(2);
  const double passes = rounds_per_s(flags, [&](std::uint64_t n) { loop->run(arrays, n); });
  return passes * static_cast<double>(calibration::requested_bytes(traffic, each));
}

double flops_per_s(const Flags& flags) {
  const auto width = chosen<models::Width>(flags, "--width");
  const auto operation = flags.word("--flops");
  for (const calibration::FlopKernel& kernel : calibration::flop_kernels()) {
    if (kernel.width == width && models::name(kernel.operation) == operation &&
        kernel.precision == models::Precision::double_precision) {
      const calibration::FlopOperands operands{};
      alignas(64) std::array<unsigned char, calibration::flop_accumulators * calibration::accumulator_stride> sums{};
      const double rounds = rounds_per_s(flags, [&](std::uint64_t n) { kernel.run(n, operands, sums.data()); });
      return rounds * static_cast<double>(calibration::flops_of(kernel, 1));
    }
  }
  flags.refuse("there is no such kernel");
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags("roofs", "a kernel of the calibration, on average");
  flags.number("--seconds", 0.2, 0.001, 60, "time to measure for")
      .number("--warm", 0.05, 0, 60, "time to run before")
      .number("--kib", 16, 2, 4194304, "of all arrays");
  flags.choice("--width", words<models::Width>(), "of the instructions")
      .choice("--pages", {"huge", "small"}, "of the arrays")
      .choice("--clock", {"cpu", "elapsed"}, "that rates are by")
      .choice("--mix", words<models::Mix>(), "loads to stores")
      .choice("--flops", {"none", "add", "mul", "fma"}, "of doubles in registers, instead of loads and stores");
  flags.parse(argc, argv);
  if (!calibration::is_supported(chosen<models::Width>(flags, "--width"))) {
    flags.refuse("this processor has no such vectors");
  }
  if (flags.word("--pages") == "small") {
    ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  }
  const bool in_registers = flags.word("--flops") != "none";
  std::printf("{\"per_s\":%.6g}\n", in_registers ? flops_per_s(flags) : bytes_per_s(flags));
}
