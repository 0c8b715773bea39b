// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/probe/line_probe.h"

#include <atomic>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/try_lock.h"
#include "profile/arena.h"

namespace crosstalk::in_target {
namespace {

using watch_policy::TwoLooks;

constexpr std::uint64_t same_tick_ns = 20'000;  // for handlers of the same tick, which take less

constinit std::atomic<std::uint32_t> stays{0};
constinit ProcessFlag probing;

bool others_stay() { return stays.load(std::memory_order_acquire) > 1; }

/// Waits by spinning: sleeping would change the state that other threads see.
bool others_have_gone(std::uint64_t until_ns) {
  while (others_stay()) {
    if (monotonic_ns() > until_ns) {
      return false;
    }
    __builtin_ia32_pause();
  }
  return true;
}

std::nullopt_t nothing(std::atomic<std::uint64_t>& reason) {
  reason.fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

}  // namespace

HandlerStay::HandlerStay() { stays.fetch_add(1, std::memory_order_acq_rel); }
HandlerStay::~HandlerStay() { stays.fetch_sub(1, std::memory_order_acq_rel); }
void forget_handler_stays() { stays.store(0, std::memory_order_relaxed); }

std::optional<TwoLooks> look_twice(std::uint64_t line, std::uint32_t gap_ns, profile::ProbeCounts& skipped) {
  const TryLock lock(probing, runtime().pid);
  if (!lock.held()) {
    return nothing(skipped.beside_another);
  }
  if (!others_have_gone(monotonic_ns() + same_tick_ns)) {
    return nothing(skipped.in_handlers);
  }
  const auto read = [line](watch_policy::LineWords& words) {
    return read_memory(line, words.data(), sizeof words, runtime().pid) == sizeof words;
  };
  const auto looks = is_present(line) ? watch_policy::look_twice(read, monotonic_ns, gap_ns) : std::nullopt;
  if (!looks) {
    return nothing(skipped.unreadable);
  }
  if (others_stay()) {
    return nothing(skipped.in_handlers);
  }
  return looks;
}

}  // namespace crosstalk::in_target
