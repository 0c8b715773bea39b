// SPDX-License-Identifier: Apache-2.0
// The head of a report: threads, what sampling did and cost, and what a reader must be warned of.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attribution/model.h"
#include "attribution/timeline/sample_digest.h"
#include "symbolizer/symbolizer.h"

namespace crosstalk::attribution {

/// By thread index. `cells` is the finished thread matrix; null where communication is not known.
[[nodiscard]] std::vector<ThreadSummary> thread_summaries(std::span<const profile::ThreadRow> threads,
                                                          std::span<const profile::ProcessRow> processes,
                                                          std::span<const ThreadTotal> totals, const Matrix* cells);

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

/// What the parts of attribution found to be missing or damaged.
struct Defects {
  std::uint64_t malformed_samples = 0;
  std::uint64_t ignored_traps = 0, trap_gaps = 0;
  double unwatched_share = 0;  // of eligible time, in strata that no watch speaks for
  std::vector<symbolizer::Symbolizer::Missing> missing_symbols;
};
/// Adds the time in the collector's own functions to what observing has cost. `cpu_s`: of all threads.
void charge_stand_ins(double stand_ins_s, double cpu_s, SamplingSummary& sampling);

/// Those of the profile first, in its order, then what was found here.
[[nodiscard]] std::vector<Warning> warnings_of(const profile::Session& session,
                                               std::span<const profile::MessageRow> messages,
                                               const SamplingSummary& sampling, const Communication& communication,
                                               const Defects& defects);

}  // namespace crosstalk::attribution
