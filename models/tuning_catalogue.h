// SPDX-License-Identifier: Apache-2.0
// Remedies for a loop: those that its evidence supports, the most promising first.
//
// Source: as busy_time.h, chapter 5; each entry of the catalogue names its section. The catalogue leaves out techniques
// for the source's processor and compiler alone (predicates, sector caches, directives) and has those of x86 instead.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "models/application_class.h"
#include "models/busy_time.h"
#include "models/cycle_accounting.h"
#include "models/machine.h"

namespace crosstalk::models {

/// Accesses that move by a constant stride of a line or more an iteration.
struct LongStrides {
  double part = 0;          // of the loop's accesses that move
  double stride_bytes = 0;  // of the one that touches most lines
  double lines_bytes = 0;   // of the lines that it touches on its way
};

/// The evidence of a loop for the catalogue. Absent: not known, and no remedy relies on it.
struct TuningEvidence {
  BusyTimes busy;
  std::optional<BusyClass> busy_class;
  double elapsed_s = 0;
  const CycleAccount* waits = nullptr;      // null: not known
  LoopBody body;                            //
  std::vector<std::string> own_callees;     // functions of the program's own that it calls, which could be inlined
  std::optional<double> packed;             // part of the floating-point operations that are SIMD
  std::optional<Width> widest_flops;        // in use
  std::optional<Width> widest_available;    // of the machine
  std::optional<double> multiply_adds;      // part of the operations that are fused multiply-adds
  std::optional<double> other_flops;        // part that are divisions, roots and the like
  std::optional<double> access_bytes;       // of an access, on average
  double gathers = 0, scatters = 0;         // instructions in an iteration
  std::optional<LongStrides> long_strides;  // nullopt: none of its accesses has one, or that is not known
  double first_level_bytes = 32 * 1024;     // of the cache; as of most processors where it is not known
  std::optional<double> stack_accesses;     // part of its accesses that are to the function's own stack frame
  std::optional<double> chain_share;        // part of the time that its slowest chain of dependences takes by itself
  std::optional<double> local_share;        // part of the time that it would take at most with its data in L1D
  bool chain_is_fpu = false;                // floating-point operations are most of that chain
  bool stores_only_new = false;             // it stores whole lines that it does not load, by ordinary stores
  std::optional<double> imbalance;          // imbalance() of its threads
};

struct Remedy {
  std::string title;     // the change, an imperative
  std::string why;       // the effect of the change, a sentence
  std::string evidence;  // the observation, a sentence
  std::string section;   // of the source: "5.3.1"
};

/// At most `most` remedies. Empty if the evidence supports none.
[[nodiscard]] std::vector<Remedy> remedies_for(const TuningEvidence& evidence, std::size_t most = 3);

}  // namespace crosstalk::models
