// SPDX-License-Identifier: Apache-2.0
// The processor's events that sample a thread's memory accesses (pebs, ibs; ibs-kmod: by our kernel module), beside its
// clock. The recorder chooses the events (profile/memory_sampling.h).
//
// They raise no signal. Their samples stay in a ring of the thread's until the handler of its clock reads them.
// docs/reasons.md says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectors/access/finder.h"
#include "collectors/in_target/core/thread_state.h"
#include "collectors/memory_samples/measured_access.h"
#include "collectors/observation.h"

namespace crosstalk::in_target {

/// An access in the past: since then its thread has gone on, and its stack and registers have changed.
struct PastAccess {
  collectors::Observation& seen;
  std::span<const std::byte> stack;  // from rsp upward, as it was; a short piece
};

/// A source whose observations come several at a time.
struct MemoryEvents {
  using Take = void (*)(void* context, const PastAccess& access);

  /// True if the session has any.
  static bool wanted();
  /// True if threads may open them: our module asks for no right to events of perf.
  static bool allowed();
  static bool is_open(const ThreadState& thread) { return thread.memory.count != 0; }
  /// Begins to sample the calling thread. False: it cannot, which is entered in the arena.
  static bool open(ThreadState& self);
  /// Any thread may do it.
  static void close(ThreadState& thread);
  /// In a forked child: closes its copies, and forgets what its parent had.
  static void forget(ThreadState& thread);
  /// Gives the samples since the last call to `take`, in their order. Returns the number of samples, including those
  /// without a result.
  static std::uint32_t deliver(ThreadState& self, Take take, void* context);
  template <class Use>
  static std::uint32_t deliver(ThreadState& self, Use use) {
    return deliver(
        self, [](void* context, const PastAccess& access) { (*static_cast<Use*>(context))(access); }, &use);
  }
  /// Draws new periods that are due, for a sample of each event in `wanted_ns` of the thread's time.
  static void keep_pace(ThreadState& self, std::uint64_t wanted_ns);
  /// Returns the most that the processor's interrupt and the kernel's handler for it cost: that of a clock, with its
  /// signal.
  static std::uint64_t delivery_ns();
};

/// The thread is not sampled by them, or no longer: entered in the arena, once a thread. `error`: errno; 0: none.
void note_refusal(ThreadState& self, profile::MemoryRefusal reason, int error = 0);

}  // namespace crosstalk::in_target
