// SPDX-License-Identifier: Apache-2.0
// The rows of one profile, under keys by which those of another are found.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "attribution/comparison/comparison.h"

namespace crosstalk::attribution::comparison {

struct Entry {
  Subject subject;
  Costs costs;
  ObjectKind kind = ObjectKind::unknown;
  Place allocated;         // of heap objects; else empty
  double heaviest_s = -1;  // of the parts that were added: what the subject is taken from
};
using Entries = std::map<std::string, Entry>;

/// Which entries of two profiles are one; null: it has none there.
struct Pairing {
  const Entry* before = nullptr;
  const Entry* after = nullptr;
};

[[nodiscard]] CodeSeen code_seen(const Analysis& analysis);

/// Places of `analysis` are looked up in `places` (of the profile before), or taken as they are (null).
[[nodiscard]] Entries line_entries(const Analysis& analysis, const PlaceMap* places);
[[nodiscard]] Entries object_entries(const Analysis& analysis, const PlaceMap* places);
/// Threads go by name without the number at its end; those that are called as their program are one group.
[[nodiscard]] Entries thread_entries(const Analysis& analysis);

[[nodiscard]] std::vector<Pairing> pair_by_key(const Entries& before, const Entries& after);
/// By name; heap blocks that are left by where they were allocated; what is left by its name without numbers, where
/// each profile has one.
[[nodiscard]] std::vector<Pairing> pair_objects(const Entries& before, const Entries& after);

/// Both sorts of sharing together.
[[nodiscard]] Costs costs_of(const Amount& true_sharing, const Amount& false_sharing, double cpu_s);
/// Of what a profile has not seen.
[[nodiscard]] Costs unseen_costs(const Analysis& analysis);

/// "worker" of "worker-12" and "worker 3"; names of digits alone stay.
[[nodiscard]] std::string without_number(const std::string& name);
inline constexpr const char* program_threads = "(unnamed)";  // threads that are called as their program

}  // namespace crosstalk::attribution::comparison
