// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sync/measured_wait.h"

#include <atomic>

#include "collectors/in_target/core/fork_mark.h"
#include "collectors/in_target/core/passage.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/regions/marked_regions.h"
#include "collectors/in_target/sys/system_calls.h"
#include "collectors/in_target/sys/wait_clock.h"

namespace crosstalk::in_target {
namespace {

using profile::ThreadWaits;
using profile::WaitKind;

constinit thread_local OwnWaits the_own_waits __attribute__((tls_model("initial-exec")));

ThreadWaits* table_of(const ThreadState& thread) { return runtime().arena.waits(thread.number - 1); }

/// Asks the kernel which thread this is.
__attribute__((noinline, cold)) OwnWaits* look_up() {
  const Passage passage;
  if (!observing() || kernel_process_id() != runtime().pid) {
    return nullptr;
  }
  const ThreadState* const self = current_thread();
  if (self == nullptr || self->phase.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(ThreadPhase::live)) {
    return nullptr;
  }
  ThreadWaits* const table = table_of(*self);
  if (table->measured.load(std::memory_order_relaxed) == 0) {
    return nullptr;
  }
  the_own_waits = OwnWaits{table, runtime().pid};
  return &the_own_waits;
}

/// True if the sum is that of the place, or could be made so.
bool is_for(ThreadWaits::Sum& sum, ThreadWaits::Place place) {
  ThreadWaits::Place now = sum.place.load(std::memory_order_relaxed);
  return now == place || (now == 0 && (sum.place.compare_exchange_strong(now, place) || now == place));
}

ThreadWaits::Sum& sum_of(ThreadWaits& table, ThreadWaits::Place place) {
  for (std::uint32_t i = 0; i < ThreadWaits::places; ++i) {
    if (is_for(table.sum[i], place)) {
      return table.sum[i];
    }
  }
  const std::uint8_t kind = ThreadWaits::kind_number_of(place);
  ThreadWaits::Sum& of_others = table.sum[ThreadWaits::places + kind - 1];
  of_others.place.store(ThreadWaits::place_of(static_cast<WaitKind>(kind), 0), std::memory_order_relaxed);
  return of_others;
}

}  // namespace

constinit std::atomic<bool> waits_wanted{false};

OwnWaits* own_waits() {
  if (is_unnoticed_fork()) {  // the table is in memory that it shares with its parent
    return nullptr;
  }
  return the_own_waits.table != nullptr && the_own_waits.pid == runtime().pid ? &the_own_waits : look_up();
}

bool is_alone() { return registry().live() <= 1; }

void add_wait(ThreadWaits& table, ThreadWaits::Place place, std::uint64_t waited_ns, std::uint64_t waits) {
  ThreadWaits::Sum& sum = sum_of(table, place);
  sum.waited_ns.fetch_add(waited_ns, std::memory_order_relaxed);
  sum.count.fetch_add(waits, std::memory_order_relaxed);
  const auto slot = static_cast<std::uint32_t>(&table - runtime().arena.waits(0));
  add_region_wait(slot, profile::class_of(static_cast<WaitKind>(ThreadWaits::kind_number_of(place))), waited_ns);
}

void begin_waits(const ThreadState& self) {
  ThreadWaits& table = *table_of(self);
  for (ThreadWaits::Sum& sum : table.sum) {
    sum.place.store(0, std::memory_order_relaxed);
    sum.waited_ns.store(0, std::memory_order_relaxed);
    sum.count.store(0, std::memory_order_relaxed);
  }
  table.since_ns.store(0, std::memory_order_relaxed);
  const bool wanted = runtime().config.measure_waits != 0 && !runtime().injected;
  waits_wanted.store(wanted, std::memory_order_relaxed);
  table.measured.store(wanted && wait_clock_ns() != 0 ? 1 : 0, std::memory_order_relaxed);
}

void end_waits() {
  forget_wait();
  the_own_waits = OwnWaits{};
}

void forget_wait() {
  if (the_own_waits.table != nullptr && the_own_waits.pid == runtime().pid && observing()) {
    the_own_waits.table->since_ns.store(0, std::memory_order_relaxed);
  }
}

bool is_waiting(const ThreadState& self, std::uint64_t stack_pointer) {
  const ThreadWaits& table = *table_of(self);
  return table.since_ns.load(std::memory_order_relaxed) != 0 &&
         stack_pointer <= table.frame.load(std::memory_order_relaxed);
}

MeasuredWait::MeasuredWait(WaitKind kind, const void* site, const void* frame)
    : place_(ThreadWaits::place_of(kind, reinterpret_cast<std::uint64_t>(site))) {
  const OwnWaits* const own = measures_waits() ? own_waits() : nullptr;
  if (own == nullptr) {
    return;
  }
  const auto here = reinterpret_cast<std::uint64_t>(frame);
  ThreadWaits& table = *own->table;
  if (table.since_ns.load(std::memory_order_relaxed) != 0 && table.frame.load(std::memory_order_relaxed) >= here) {
    return;
  }
  begin_ns_ = wait_clock_ns();
  if (begin_ns_ == 0) {
    return;
  }
  table.place.store(place_, std::memory_order_relaxed);
  table.frame.store(here, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  table.since_ns.store(begin_ns_, std::memory_order_relaxed);
  pid_ = own->pid;
  table_ = &table;
}

MeasuredWait::~MeasuredWait() {
  if (table_ == nullptr || pid_ != runtime().pid || !observing()) {
    return;
  }
  const std::uint64_t end_ns = wait_clock_ns();
  table_->since_ns.store(0, std::memory_order_relaxed);
  if (end_ns > begin_ns_) {
    add_wait(*table_, place_, end_ns - begin_ns_);
  }
}

}  // namespace crosstalk::in_target
