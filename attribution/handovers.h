// SPDX-License-Identifier: Apache-2.0
// A condition variable and its lock are one thing to who wrote them: threads that wait for each other exchange the
// words of both. A pure function of what communicates.
#pragma once

#include <cstddef>
#include <vector>

#include "attribution/model.h"

namespace crosstalk::attribution {

/// Indices into Communication::objects.
struct Handover {
  std::size_t condition = 0;
  std::vector<std::size_t> locks;  // never empty
};

/// A lock belongs to a condition that the same threads exchange where both are accessed from one source line (to wait
/// is to release the lock and to take it again), or, where no such line was seen, where it is the only one that waiters
/// take again or that is accessed from the same functions. Each lock belongs to one condition, the costlier first.
[[nodiscard]] std::vector<Handover> handovers_of(const Communication& found);

/// The fields of an object that are a condition variable and a lock, the costliest of each: threads wait for each other
/// by both. Null: it does not have both, or hardly anything is spent on one of them.
struct SyncPair {
  const SyncField* condition = nullptr;
  const SyncField* lock = nullptr;
};
[[nodiscard]] SyncPair handover_within(const ObjectRow& object);

/// The row of the condition with the costs and cells of its locks added to its own.
[[nodiscard]] ObjectRow joined(const std::vector<ObjectRow>& objects, const Handover& handover);

}  // namespace crosstalk::attribution
