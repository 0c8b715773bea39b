// SPDX-License-Identifier: Apache-2.0
// Figures from the calibrated machine and a loop's work: busy times, class, waits, changes to make. Its names follow
// the JSON contract (docs/report-json.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attribution/counters/counter_rates.h"
#include "models/application_class.h"
#include "models/busy_time.h"
#include "models/cycle_accounting.h"
#include "models/peaks.h"
#include "models/tuning_catalogue.h"
#include "symbolizer/loops/loop_body.h"

namespace crosstalk::attribution {

struct LoopFigures {
  models::BusyTimes busy;               // of all threads' CPU time in the loop
  models::ByUnit<std::string> reasons;  // why a unit's is absent, half a sentence; empty: it is there, or is not
  models::ByUnit<bool> counted;         // a unit's work is by hardware counters, else by code and samples
  models::ByUnit<std::optional<double>> per_s;  // work a second of CPU time: bytes by level, operations
  std::vector<std::string> notes;               // caveats of the busy times, sentences
  std::optional<double> fpu_of_machine;  // operations, of the effective peak that the machine's best code reaches
  std::optional<double> bytes_to_flops, balance;
  models::Classified busy_class;
  models::ApplicationCandidates application;
  std::vector<models::Remedy> advice;
  models::CycleAccount waits;                     // of all threads' CPU time in the loop
  std::optional<double> packed, multiply_adds;    // parts of the floating-point operations
  std::optional<models::FlopMix> flops;           // a second of CPU time, by kind
  std::optional<models::LevelShares> served;      // of the lines it accesses, the parts from L1D, L2, L3 and memory
  std::optional<double> access_bytes;             // of an access, on average
  double gathers = 0, scatters = 0;               // an iteration
  std::optional<symbolizer::LoopBodyFacts> body;  // of a loop without inner ones; nullopt: not known
  std::optional<CounterRates> counters;           // by hardware counters; absent: none was read
  double threads = 1;                             // executing it at once, on average
  std::optional<double> imbalance;                // of threads' CPU time in it, but for measured waits for others

  /// CPU time of the thread that is in the loop longest: the loop took at least that.
  [[nodiscard]] double elapsed_s(double cpu_s) const { return cpu_s / threads; }
};

}  // namespace crosstalk::attribution
