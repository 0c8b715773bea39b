// SPDX-License-Identifier: Apache-2.0
// Limits the cost of communication that a recording has not detected, and lists what its evidence cannot see. Pure.
//
// The limit is of communication between recorded threads, in user mode, while several of them lived. Some of what the
// evidence cannot see lies within it; the list tells which.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace crosstalk::attribution {

/// The best evidence of communication that a recording has.
enum class EvidenceKind : std::uint8_t {
  watched,          // watchpoints that could show everything
  watched_in_part,  // watchpoints that do not fire for some kinds of access
  probed,           // lines that were read twice while a thread stood still
  sampled,          // addresses of samples alone
  none,
};
/// "watched", "watched_in_part", ...
[[nodiscard]] const char* evidence_name(EvidenceKind evidence);

struct CannotSee {
  std::string code;          // stable: "silent_stores"
  std::string what;          // in words: "stores that leave a value as it was"
  bool within_limit = true;  // the limit holds for it, too
};

struct Undetected {
  EvidenceKind evidence = EvidenceKind::none;
  /// Upper limit of the cost, with 97.5 % confidence; 0: no two threads lived at the same time.
  std::optional<double> at_most_s;
  std::string why;  // what the limit rests on, or why there is none; empty: nobody has asked yet
  std::vector<CannotSee> cannot_see;
  bool met = true;  // false: no sample shows a thread in user mode while another one with memory in common lived
  std::optional<double> by_chance_s = {};  // of `at_most_s`: the part that more watches lower; absent: there is none
};

/// The facts that decide the limit. Times add up all threads.
struct UndetectedFacts {
  EvidenceKind evidence = EvidenceKind::none;
  std::string silent_kinds;           // of watched_in_part: the accesses that may go unseen, in words
  std::optional<double> unseen_s;     // at most this was unseen in time that watches speak for; absent: no limit
  std::optional<double> reachable_s;  // at most so much CPU time in user mode in company; absent: not known
  double out_of_reach_s = 0;          // at most this part of it could be neither watched nor probed
  double seen_s = 0;                  // at least this was seen to be communication
  double least_s = 0;                 // no limit is lower, unless no two threads lived at the same time
  bool met = true;                    // as in Undetected
};
[[nodiscard]] Undetected undetected(const UndetectedFacts& facts);

}  // namespace crosstalk::attribution
