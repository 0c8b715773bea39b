// SPDX-License-Identifier: Apache-2.0
// The history of one cache line, as much of it as the definition of a communication needs, and no less: what it
// says is exact. Pure; not thread-safe.
//
// communication i -> j: an access by j to a line whose most recent store was by i != j and came after j's own
//   previous access (or j has none). True sharing if j's access overlaps a byte that i stored since then.
// invalidation j -> k: a store by j to a line that k has read since its last store (k's reads right behind a store
//   of its own, before anybody else came, aside: that store is then a communication's or nobody's).
//
// Accesses in a row by one thread are a run. Other threads can only tell runs apart, so times are numbers of runs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/registers.h"

namespace crosstalk::reference {

using ThreadIndex = std::uint32_t;  // order of creation; main is 0
using CodeIndex = std::uint32_t;    // an instruction

struct LineAccess {
  ThreadIndex thread = 0;
  CodeIndex code = 0;
  std::uint64_t bytes = 0;  // bit n: byte n of the line
  AccessKind kind = AccessKind::none;
};

struct Transfer {
  ThreadIndex producer = 0;
  CodeIndex producer_code = 0;  // of the latest store that makes it true sharing, else of the producer's latest
  bool true_sharing = false;
  bool operator==(const Transfer&) const = default;
};

class LineState {
 public:
  /// Adds an access; returns its transfer if it communicates. Appends the threads whose copy it invalidates to
  /// `invalidated`, in order of their first access.
  std::optional<Transfer> access(const LineAccess& access, std::vector<ThreadIndex>& invalidated);

  /// True if the latest access was by `thread`: its next load then changes and means nothing.
  [[nodiscard]] bool last_was(ThreadIndex thread) const { return last_thread_ == thread; }
  /// Memory held beside the object itself.
  [[nodiscard]] std::size_t heap_bytes() const {
    return parties_.capacity() * sizeof(Party) + stores_.capacity() * sizeof(Store);
  }

 private:
  struct Party {
    ThreadIndex thread;
    std::uint64_t last_access;  // runs
    std::uint64_t last_load;    // 0: none
  };
  /// Bytes that only other threads have stored since. A thread's entries are disjoint, so it has at most 64.
  struct Store {
    std::uint64_t bytes;
    std::uint64_t run;
    ThreadIndex thread;
    CodeIndex code;
  };
  static constexpr ThreadIndex nobody = UINT32_MAX;

  Party& begin_run(ThreadIndex thread);
  [[nodiscard]] std::optional<Transfer> transfer(const LineAccess& access, const Party& party) const;
  void store(const LineAccess& access, std::vector<ThreadIndex>& invalidated);

  std::vector<Party> parties_;  // by first access
  std::vector<Store> stores_;   // oldest first
  std::uint64_t run_ = 0;
  std::uint64_t last_store_run_ = 0;  // 0: never
  ThreadIndex last_thread_ = nobody;
  ThreadIndex last_store_thread_ = nobody;
  CodeIndex last_store_code_ = 0;
};

}  // namespace crosstalk::reference
