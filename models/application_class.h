// SPDX-License-Identifier: Apache-2.0
// The kinds of application that a loop may belong to: candidates, each with its evidence. A loop's code does not tell
// its purpose, so no candidate is more than likely.
//
// Source: as busy_time.h, section 1.5 (table 1.1) and section 1.6, which says what each busy-time class corresponds to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/busy_time.h"

namespace crosstalk::models {

/// Table 1.1, in its order.
enum class ApplicationClass : std::uint8_t {
  matrix_multiplication,  // 1: expressible as matrix-matrix multiplication
  low_bf_simple,          // 2: low bytes-to-flops ratio, simple loop bodies
  cache_blocking,         // 3: allows cache blocking
  low_bf_complex,         // 4: low ratio, complex loop bodies
  high_bf_direct,         // 5: high ratio, sequential and direct access to memory
  high_bf_indirect,       // 6: high ratio, indirect access to memory
};
inline constexpr std::size_t application_classes = 6;

/// Properties of a loop's code and iterations. Absent: not known.
struct LoopBody {
  std::optional<double> instructions;  // of one iteration, loops inside it left out
  std::optional<bool> one_way;         // all iterations go the same way
  std::optional<bool> calls;           // it calls functions
  std::optional<bool> indirect;        // an address that it accesses depends on what it has loaded
};
/// A simple body is short, takes one way and calls nothing.
inline constexpr double simple_instructions = 150;
/// nullopt if a property is not known and the others do not decide.
[[nodiscard]] std::optional<bool> is_simple(const LoopBody& body);

struct ApplicationCandidate {
  ApplicationClass which = ApplicationClass::low_bf_simple;
  std::string evidence;  // a sentence
};

struct ApplicationEvidence {
  BusyTimes busy;
  std::optional<BusyClass> busy_class;
  std::optional<double> flops;           // in the elapsed time
  std::optional<double> bytes_to_flops;  // of memory (bytes_to_flops())
  /// Upper bound of bytes_to_flops: every access moves a line to the core and back. Absent: not known.
  std::optional<double> bytes_to_flops_limit;
  std::optional<double> balance;        // of the machine (machine_balance())
  std::optional<double> multiply_adds;  // part of the operations that are fused multiply-adds
  LoopBody body;
};

struct ApplicationCandidates {
  std::vector<ApplicationCandidate> candidates;  // in the order of table 1.1
  std::string unknown;                           // why there are none; empty: there are
};
[[nodiscard]] ApplicationCandidates application_candidates(const ApplicationEvidence& evidence);

}  // namespace crosstalk::models
