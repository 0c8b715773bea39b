// SPDX-License-Identifier: Apache-2.0
// Where the elapsed time of a thread or of a loop went: committing instructions, or waiting for something. The parts
// add up to the elapsed time; what no evidence tells is `unattributed`.
//
// Source: as busy_time.h, section 5.1. There a performance monitoring unit counts the cycles of each part; here is what
// other evidence gives, whichever there is.
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
/// As in JSON: "committing", "fpu", ...
[[nodiscard]] const char* cycle_class_name(CycleClass which);

/// Levels that data come from, nearest first: L1D, L2, L3, memory.
using LevelShares = std::array<double, 4>;

/// Where samples of time stand: at what the oldest unfinished instruction waits for. Parts of all samples in the user's
/// code, 1 together at most; the rest is of instructions that wait for nothing of this.
struct Standing {
  double fpu = 0, data = 0, frontend = 0, branch = 0;
};

/// What is known. Absent: nothing is, and no time is given to it.
struct CycleEvidence {
  double elapsed_s = 0;
  // By clocks and records:
  // All of the time in which it had no processor, but for waits of which is known that they were for other threads.
  std::optional<double> off_cpu_s = {};
  std::optional<double> io_s = {};        // of off_cpu_s
  std::optional<double> runnable_s = {};  // of off_cpu_s
  std::optional<double> lock_s = {}, barrier_s = {}, condition_s = {};
  std::optional<double> kernel_s = {};  // on the processor
  // Of what is left, which is the time in the user's code:
  // Instructions / what the core can commit. Not the rate of any one sort of instruction, which is lower.
  std::optional<double> commit_bound_s = {};
  std::optional<Standing> standing = {};
  std::optional<LevelShares> data_levels = {};  // of the waits for data, by where data came from; 1 together
};

class CycleAccount {
 public:
  /// Seconds; nullopt: no evidence tells of it. `unattributed` is always known.
  [[nodiscard]] const std::optional<double>& operator[](CycleClass which) const {
    return seconds_[static_cast<std::size_t>(which)];
  }
  [[nodiscard]] double total() const;
  std::vector<std::string> notes;  // what to know of the figures, sentences

  std::optional<double>& at(CycleClass which) { return seconds_[static_cast<std::size_t>(which)]; }

 private:
  std::array<std::optional<double>, cycle_classes> seconds_{};
};

/// Time is given in the order of the evidence above, which is how sure it is, and to nothing more than is left. In the
/// user's code, committing takes what its instructions need at least, and the waits share the rest as samples stand.
/// Where the former is not known, they share all of it, and a note says so.
[[nodiscard]] CycleAccount account(const CycleEvidence& evidence);

/// How uneven threads are loaded: the part of their time, all together, that they would wait at a barrier behind the
/// slowest, 1 - mean / greatest. nullopt for less than two threads, or without time.
[[nodiscard]] std::optional<double> imbalance(std::span<const double> seconds_by_thread);

}  // namespace crosstalk::models
