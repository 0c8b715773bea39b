// SPDX-License-Identifier: Apache-2.0
// What all measurements of a calibration share, and the measurements, each in a file of its name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collectors/calibration/team.h"
#include "collectors/calibration/tries.h"
#include "models/machine.h"

namespace crosstalk::collectors::calibration {

struct Bench {
  const models::Machine& machine;  // described, with the figures that are there already
  Effort effort;
  std::vector<std::uint32_t> cpus;   // that may be used
  std::vector<std::uint32_t> cores;  // one of them on each physical core; the last one is `one`'s
  Team& one;
  Team& all;                                              // on `cores`
  std::function<void(const std::string& what)> progress;  // called before what takes a while

  [[nodiscard]] Team& team(models::Scope scope) const { return scope == models::Scope::one_core ? one : all; }
};

// measure_core.cpp
[[nodiscard]] models::Frequency measure_frequency(Bench& bench);
[[nodiscard]] std::vector<models::InstructionRate> measure_instructions(Bench& bench);
[[nodiscard]] std::vector<models::ChainTime> measure_chains(Bench& bench);
// measure_flops.cpp
[[nodiscard]] std::vector<models::FlopPeak> measure_flops(Bench& bench);
// measure_bandwidth.cpp
[[nodiscard]] std::vector<models::Bandwidth> measure_bandwidths(Bench& bench);
// measure_latency.cpp
/// `page_bytes` becomes what the memory beyond the caches was mapped with.
[[nodiscard]] std::vector<models::LoadLatency> measure_latencies(Bench& bench, std::uint64_t& page_bytes);
// measure_pairs.cpp
[[nodiscard]] std::vector<models::ProcessorPair> measure_pairs(Bench& bench);

/// The pairs of `cpus` to measure: all, or where they are many some of each nearness, at even distances.
[[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> choose_pairs(const models::Machine& machine,
                                                                                const std::vector<std::uint32_t>& cpus);

}  // namespace crosstalk::collectors::calibration
