// SPDX-License-Identifier: Apache-2.0
// The head of a report: threads, the amount and cost of sampling, and warnings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attribution/model/model.h"
#include "attribution/samples/sample_digest.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

/// Returns a summary of each thread, by index. `cells` is the finished thread matrix; null if communication is not
/// known. `duration_s`: the recording's.
[[nodiscard]] std::vector<ThreadSummary> thread_summaries(std::span<const profile::ThreadRow> threads,
                                                          std::span<const profile::ProcessRow> processes,
                                                          std::span<const ThreadTotal> totals, const Matrix* cells,
                                                          double duration_s);

struct SampleCounts {
  std::uint64_t samples = 0, with_address = 0, user_mode = 0;
  std::uint64_t watches = 0, traps = 0;
  std::optional<double> unknown_frames;
  SampleDigest::Measured measured = {};  // samples of hardware sources and of events with a name
  std::span<const profile::EventRow> events = {};
};
[[nodiscard]] SamplingSummary sampling_summary(const profile::Session& session,
                                               std::span<const profile::ThreadRow> threads,
                                               std::span<const ThreadTotal> totals, const SampleCounts& counts);

/// Missing or damaged data that attribution found.
struct Defects {
  std::uint64_t malformed_samples = 0;
  std::uint64_t ignored_traps = 0, trap_gaps = 0;
  double unwatched_share = 0;  // of eligible time, in strata that no watch speaks for
  std::vector<symbolizer::Symbolizer::Missing> missing_symbols;
};
/// Adds the time in the collector's own functions to the cost of observation. `cpu_s`: of all threads.
void charge_stand_ins(double stand_ins_s, double cpu_s, SamplingSummary& sampling);

/// The warnings of the profile, in its order, then those of attribution.
[[nodiscard]] std::vector<Warning> warnings_of(const profile::Session& session,
                                               std::span<const profile::MessageRow> messages,
                                               const SamplingSummary& sampling, const Communication& communication,
                                               const Defects& defects);

}  // namespace crosstalk::attribution
