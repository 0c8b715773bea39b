// SPDX-License-Identifier: Apache-2.0
// A simulated program under a simulated prober, whose lines are read twice while their sampled thread stands still
// (collectors/in_target/probe/). Only the moments of stores and of handlers are simulated; the rows are those that the
// collector and the recorder make of them. Times are nanoseconds.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "attribution/timeline/sampled_code.h"
#include "tests/simulation/run.h"

namespace crosstalk::simulation {

/// When a thread stores to a line that the next one loads, in its own time.
enum class Rhythm {
  never,
  regular,      // each `interval_ns`
  exponential,  // at random, each `interval_ns` on average
  bursts,       // likewise while it is active, for a share `duty` of its time
  in_turn,      // once after the loading thread has had its turn; that one waits for the store
};

/// Threads in a ring: each loads lines to which the one before it stores.
struct ProbedProgram {
  std::string_view name;
  std::string_view summary;  // one sentence
  Rhythm rhythm = Rhythm::exponential;
  double interval_ns = 5000;  // between stores to one line
  std::uint32_t threads = 2;
  std::uint32_t lines = 1;   // that a thread loads
  double duty = 1;           // of bursts
  double burst_ns = 5e6;     // mean length
  double silent = 0;         // share of stores that leave the value as it was
  bool other_word = false;   // the stores are to another word than the loads
  double speed_up = 1;       // of stores to a line whose loading thread stands still
  double duration_ns = 4e9;  // of each thread
  // A thread works, loads a line, and begins anew; each takes from half to one and a half of this.
  double work_ns = 8000;
  double transfer_ns = 4000;  // the load, if there was a store since its last one
  double hit_ns = 5;          // the load otherwise
  // The prober.
  double period_ns = 4e6;
  double jitter = 0.2;    // of the period, to both sides
  bool lockstep = false;  // the threads' clocks expire together
  double gap_factor = 1;  // of the drawn gaps
};

/// All programs of the study, in its order.
[[nodiscard]] std::span<const ProbedProgram> probed_programs();
/// The program called `name`; it must exist.
[[nodiscard]] const ProbedProgram& probed_program(std::string_view name);

/// Simulates a recording; the same seed gives the same one.
[[nodiscard]] SimulatedRun simulate(const ProbedProgram& program, std::uint64_t seed);

/// The simulated code: a sample with registers is one of a loop that waits, and has what was loaded last in rax.
class SimulatedCode : public attribution::UnknownCode {
 public:
  std::optional<attribution::LoadedValue> last_loaded(const profile::SampleRow& sample) override;
};

}  // namespace crosstalk::simulation
