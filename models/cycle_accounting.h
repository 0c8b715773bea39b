// SPDX-License-Identifier: Apache-2.0
// Divides the elapsed time of a thread or of a loop into committing instructions and kinds of waiting. The parts add up
// to the elapsed time; time without evidence is `unattributed`.
//
// Source: as busy_time.h, section 5.1. There a performance monitoring unit counts the cycles of each part; here any
// other available evidence gives them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace crosstalk::models {

enum class CycleClass : std::uint8_t {
  committing,    // at the rate at which the core can commit
  fpu,           // waiting for a functional unit: its result, or a free one
  l1d,           // for data from that level
  l2,            //
  l3,            //
  memory,        //
  data,          // for data, from a level that is not known
  frontend,      // for instructions
  branch,        // for the right way after a wrong prediction
  lock,          // for another thread, by spinning or asleep
  barrier,       //
  condition,     //
  io,            // off the processor: for a device or a pipe
  blocked,       // off the processor, for what is not known
  runnable,      // off the processor, for a free one
  kernel,        // on the processor, in the kernel
  unattributed,  //
};
inline constexpr std::size_t cycle_classes = 17;
/// The names in JSON: "committing", "fpu", ...
[[nodiscard]] const char* cycle_class_name(CycleClass which);

/// Parts by the level that data come from, nearest first: L1D, L2, L3, memory.
using LevelShares = std::array<double, 4>;

/// The parts of all time samples in user code by the reason for which the oldest unfinished instruction waits; at most
/// 1 together. The rest are instructions that wait for none of these. Absent: what is at hand cannot tell that reason.
struct Standing {
  std::optional<double> fpu = {}, data = {}, frontend = {}, branch = {};
};

/// The known evidence. Absent: nothing is known, and the class gets no time.
struct CycleEvidence {
  double elapsed_s = 0;
  // By clocks and records:
  // All time without a processor, except for waits that are known to be for other threads.
  std::optional<double> off_cpu_s = {};
  std::optional<double> io_s = {};        // of off_cpu_s
  std::optional<double> runnable_s = {};  // of off_cpu_s
  std::optional<double> lock_s = {}, barrier_s = {}, condition_s = {};
  std::optional<double> kernel_s = {};  // on the processor
  // Parts of the remaining time, which is in user code:
  // Instructions / the core's commit rate. Not by the lower rate of a single sort of instruction.
  std::optional<double> commit_bound_s = {};
  std::optional<Standing> standing = {};
  std::optional<LevelShares> data_levels = {};  // of the waits for data, by where data came from; 1 together
};

class CycleAccount {
 public:
  /// Seconds; nullopt: there is no evidence of this class. `unattributed` is always known.
  [[nodiscard]] const std::optional<double>& operator[](CycleClass which) const {
    return seconds_[static_cast<std::size_t>(which)];
  }
  [[nodiscard]] double total() const;
  std::vector<std::string> notes;  // caveats of the figures, sentences

  std::optional<double>& at(CycleClass which) { return seconds_[static_cast<std::size_t>(which)]; }

 private:
  std::array<std::optional<double>, cycle_classes> seconds_{};
};

/// Gives time to classes in the order of CycleEvidence, the surest first, and never more than is left. In user code,
/// committing gets the least time that its instructions need, and the waits share the rest by the samples' standing. If
/// the commit time is not known, the waits share all of it, and a note says so.
[[nodiscard]] CycleAccount account(const CycleEvidence& evidence);

/// Load imbalance of threads: the part of their total time that they would wait at a barrier for the slowest, 1 - mean
/// / greatest. nullopt for less than two threads, or without time.
[[nodiscard]] std::optional<double> imbalance(std::span<const double> seconds_by_thread);

}  // namespace crosstalk::models
