// SPDX-License-Identifier: Apache-2.0
// The rows of one profile, with keys that match those of another profile.
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

/// Matched entries of two profiles; null: that profile has none.
struct Pairing {
  const Entry* before = nullptr;
  const Entry* after = nullptr;
};

[[nodiscard]] CodeSeen code_seen(const Analysis& analysis);

/// Looks up places of `analysis` in `places` (of the profile before), or takes them unchanged (null).
[[nodiscard]] Entries line_entries(const Analysis& analysis, const PlaceMap* places);
[[nodiscard]] Entries object_entries(const Analysis& analysis, const PlaceMap* places);
/// Groups threads by name without the number at its end. Threads with their program's name form one group.
[[nodiscard]] Entries thread_entries(const Analysis& analysis);

[[nodiscard]] std::vector<Pairing> pair_by_key(const Entries& before, const Entries& after);
/// Matches by name, then remaining heap blocks by their allocation site, then the rest by name without numbers if each
/// profile has exactly one.
[[nodiscard]] std::vector<Pairing> pair_objects(const Entries& before, const Entries& after);

/// The sum of both sorts of sharing.
[[nodiscard]] Costs costs_of(const Amount& true_sharing, const Amount& false_sharing, double cpu_s);
/// Costs of a row that a profile has not seen: 0 if watches could have seen it, and at most all that is undetected.
[[nodiscard]] Costs unseen_costs(const Analysis& analysis);

/// "worker" for "worker-12" and "worker 3"; names of digits alone stay.
[[nodiscard]] std::string without_number(const std::string& name);
inline constexpr const char* program_threads = "(unnamed)";  // threads that are called as their program

}  // namespace crosstalk::attribution::comparison
