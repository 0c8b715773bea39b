// SPDX-License-Identifier: Apache-2.0
// The common state of a calibration's measurements, and the measurements, each in a file of its name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collectors/calibration/held_memory.h"
#include "collectors/calibration/schedule.h"
#include "collectors/calibration/team.h"
#include "collectors/calibration/tries.h"
#include "models/machine.h"

namespace crosstalk::collectors::calibration {

inline constexpr const char* no_such_instructions = "this processor has no such instructions";

struct Bench {
  const models::Machine& machine;  // described, with the figures that are there already
  Schedule schedule;
  std::vector<std::uint32_t> cpus;   // that may be used
  std::vector<std::uint32_t> cores;  // one of them on each physical core; the last one is `one`'s
  Team& one;
  Team& all;                                              // on `cores`
  std::function<void(const std::string& what)> progress;  // called before what takes a while
  std::uint64_t beyond_caches = 4;                        // times what caches hold, memory is measured with
  HeldMemory memory = {};                                 // beyond all caches

  [[nodiscard]] Team& team(models::Scope scope) const { return scope == models::Scope::one_core ? one : all; }
  [[nodiscard]] std::vector<std::uint32_t> cpus_of(models::Scope scope) const {
    return scope == models::Scope::one_core ? std::vector{cores.back()} : cores;
  }
  /// How long and how many tries are; for preparations.
  [[nodiscard]] const Effort& effort() const { return schedule.effort(); }
  [[nodiscard]] Effort next_figure() { return schedule.next(monotonic_ns()); }
  [[nodiscard]] std::uint64_t preparation_deadline_ns() const {
    return schedule.preparation_deadline_ns(monotonic_ns());
  }
  /// Returns the bytes of memory that the machine has for arrays, including those that are held here.
  [[nodiscard]] std::uint64_t available() const;
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
/// Sets `page_bytes` to the page size of the memory beyond the caches.
[[nodiscard]] std::vector<models::LoadLatency> measure_latencies(Bench& bench, std::uint64_t& page_bytes);
// measure_pairs.cpp
[[nodiscard]] std::vector<models::ProcessorPair> measure_pairs(Bench& bench);
// measure_accesses.cpp
[[nodiscard]] std::vector<models::AccessRate> measure_accesses(Bench& bench);
[[nodiscard]] std::vector<models::GroupRate> measure_groups(Bench& bench);
/// Takes the ridges from the machine's `kinds` and `groups`.
[[nodiscard]] std::vector<models::RidgeRate> measure_ridges(Bench& bench, const models::Machine& machine);
// measure_flops.cpp
[[nodiscard]] std::vector<models::ThreadFlops> measure_thread_flops(Bench& bench);
// measure_kinds.cpp
/// With the re-order buffers.
[[nodiscard]] std::vector<models::KindLimits> measure_kinds(Bench& bench);
[[nodiscard]] std::vector<models::FlopLatency> measure_flop_latencies(Bench& bench);
[[nodiscard]] std::vector<models::IntegerPeak> measure_integers(Bench& bench);
// measure_buffer.cpp
void measure_buffers(Bench& bench, std::vector<models::KindLimits>& kinds);
// measure_sparse.cpp
[[nodiscard]] std::vector<models::SparseRoof> measure_sparse_roofs(Bench& bench);
[[nodiscard]] std::vector<models::SparseBand> measure_sparse_bands(Bench& bench);

/// 1, 2, 4, ... and all.
[[nodiscard]] std::vector<std::uint32_t> thread_counts(std::size_t cores);
/// The first of the cores, or the one whose figures are those of one core.
[[nodiscard]] std::vector<std::uint32_t> cores_for(const Bench& bench, std::uint32_t threads);

/// Bytes beside the arrays, for the distances between them; so latency and bandwidth of memory use blocks of one size.
inline constexpr std::uint64_t arrays_slack = 3 * 4096;

inline constexpr std::size_t bandwidths_of_a_scope = 4 * 4 + 3;  // levels of cache and memory; streaming ones of memory

// How many times the measurements ask for `next_figure`: all together, and some of them.
[[nodiscard]] std::size_t count_figures(const models::Machine& machine, const std::vector<std::uint32_t>& cpus);
[[nodiscard]] std::size_t count_accesses(std::size_t cores);
[[nodiscard]] std::size_t count_groups();
[[nodiscard]] std::size_t count_ridges();
[[nodiscard]] std::size_t count_thread_flops(std::size_t cores);
[[nodiscard]] std::size_t count_kinds();
[[nodiscard]] std::size_t count_flop_latencies();
[[nodiscard]] std::size_t count_integers();
[[nodiscard]] std::size_t count_sparse_roofs();
[[nodiscard]] std::size_t count_sparse_bands();

/// Chooses the pairs of `cpus` to measure: all, or if they are too many some of each nearness, at even distances.
[[nodiscard]] std::vector<std::pair<std::uint32_t, std::uint32_t>> choose_pairs(const models::Machine& machine,
                                                                                const std::vector<std::uint32_t>& cpus);

}  // namespace crosstalk::collectors::calibration
