// SPDX-License-Identifier: Apache-2.0
// Joins condition variables with their locks: threads that wait for each other exchange the words of both, and the
// programmer sees one thing. A pure function of communication.
#pragma once

#include <cstddef>
#include <vector>

#include "attribution/model/model.h"

namespace crosstalk::attribution {

/// Indices into Communication::objects.
struct ConditionLocks {
  std::size_t condition = 0;
  std::vector<std::size_t> locks;  // never empty
};

/// Finds the locks of condition variables. A lock belongs to a condition that the same threads exchange if one source
/// line accesses both (a wait releases the lock and takes it again). If no such line was seen, it belongs to the
/// condition if it is the only lock that waiters take again or that the same functions access. Each lock belongs to one
/// condition, the costliest first.
[[nodiscard]] std::vector<ConditionLocks> condition_locks_of(const Communication& found);

/// The condition variable and the lock among an object's fields, the costliest of each: threads wait for each other by
/// both. Null: it does not have both, or one of them costs hardly anything.
struct SyncPair {
  const SyncField* condition = nullptr;
  const SyncField* lock = nullptr;
};
[[nodiscard]] SyncPair sync_pair_within(const ObjectRow& object);

/// The condition's row with the costs and cells of its locks added.
[[nodiscard]] ObjectRow joined(const std::vector<ObjectRow>& objects, const ConditionLocks& condition);

}  // namespace crosstalk::attribution
