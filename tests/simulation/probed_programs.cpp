// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cassert>

#include "tests/simulation/probing.h"

namespace crosstalk::simulation {
namespace {

constexpr ProbedProgram stores_each(std::string_view name, std::string_view summary, Rhythm rhythm,
                                    double interval_ns) {
  ProbedProgram program;
  program.name = name;
  program.summary = summary;
  program.rhythm = rhythm;
  program.interval_ns = interval_ns;
  return program;
}

template <class Change>
constexpr ProbedProgram with(std::string_view name, std::string_view summary, Change change) {
  ProbedProgram program = stores_each(name, summary, Rhythm::exponential, 5000);
  change(program);
  return program;
}

constexpr auto bursts(double duty) {
  return [duty](ProbedProgram& p) {
    p.rhythm = Rhythm::bursts;
    p.duty = duty;
  };
}
constexpr void ring(ProbedProgram& p) {
  p.threads = 4;
  p.lines = 16;
}

constexpr std::array programs = {
    stores_each("random_100ns", "two threads, each stores to a line that the other loads, at random each 0.1 us",
                Rhythm::exponential, 100),
    stores_each("random_1us", "the same, each microsecond", Rhythm::exponential, 1000),
    stores_each("random_5us", "the same, each 5 us", Rhythm::exponential, 5000),
    stores_each("random_20us", "the same, each 20 us", Rhythm::exponential, 20'000),
    stores_each("random_100us", "the same, each 100 us", Rhythm::exponential, 100'000),
    stores_each("regular_1us", "as random_1us, at equal intervals", Rhythm::regular, 1000),
    stores_each("regular_10us", "the same, each 10 us", Rhythm::regular, 10'000),
    stores_each("regular_30us", "the same, each 30 us, which is longer than the longest gap", Rhythm::regular, 30'000),
    with("bursts_half", "as random_5us, in bursts of 5 ms, for half of the time", bursts(0.5)),
    with("bursts_tenth", "the same, for a tenth of the time", bursts(0.1)),
    with("half_silent", "as random_5us, and half of the stores leave the value as it was",
         [](ProbedProgram& p) { p.silent = 0.5; }),
    with("silent", "the same, and all of them do", [](ProbedProgram& p) { p.silent = 1; }),
    with("in_turn", "two threads wait for each other's store, which comes after 5 us",
         [](ProbedProgram& p) { p.rhythm = Rhythm::in_turn; }),
    with("other_word", "as random_5us, to another word than the loaded one",
         [](ProbedProgram& p) { p.other_word = true; }),
    with("speed_up", "as random_5us, and stores come four times as fast while the loading thread stands still",
         [](ProbedProgram& p) { p.speed_up = 4; }),
    with("lockstep", "as random_5us, and both clocks expire together", [](ProbedProgram& p) { p.lockstep = true; }),
    with("lockstep_ring", "as ring_16, and all clocks expire together",
         [](ProbedProgram& p) {
           ring(p);
           p.lockstep = true;
         }),
    with("ring_16", "four threads, each stores to 16 lines that the next one loads", ring),
    with("ring_64", "the same, with 64 lines, each 20 us",
         [](ProbedProgram& p) {
           ring(p);
           p.lines = 64;
           p.interval_ns = 20'000;
         }),
    with("doubled_gap", "as random_20us, with gaps twice as long",
         [](ProbedProgram& p) {
           p.interval_ns = 20'000;
           p.gap_factor = 2;
         }),
    with("half_period", "as random_20us, sampled twice as often",
         [](ProbedProgram& p) {
           p.interval_ns = 20'000;
           p.period_ns /= 2;
         }),
    with("short", "as random_5us, for a quarter of the time", [](ProbedProgram& p) { p.duration_ns /= 4; }),
    with("placebo", "two threads load the same lines, and nobody stores",
         [](ProbedProgram& p) { p.rhythm = Rhythm::never; }),
};

}  // namespace

std::span<const ProbedProgram> probed_programs() { return programs; }

const ProbedProgram& probed_program(std::string_view name) {
  const auto found =
      std::find_if(programs.begin(), programs.end(), [&](const ProbedProgram& p) { return p.name == name; });
  assert(found != programs.end());
  return *found;
}

}  // namespace crosstalk::simulation
