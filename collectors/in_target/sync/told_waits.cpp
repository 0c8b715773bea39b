// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sync/told_waits.h"

#include <algorithm>
#include <atomic>

#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sync/measured_wait.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/try_lock.h"
#include "collectors/in_target/sys/wait_clock.h"

namespace crosstalk::in_target {
namespace {

using profile::ThreadWaits;
using profile::WaitKind;

constexpr std::uint32_t most_nested = 8;  // tasks that wait and execute tasks; waits below are not gone on with

/// The region at whose end a thread waits, if it does.
struct RegionEnd {
  bool at = false;
  ToldRegion* begun = nullptr;  // the region, in the thread that it began in
};

/// The state of a thread's wait. Written by the thread, and by the one that began its region when the region's end
/// opens.
struct ToldWait {
  ThreadWaits* table = nullptr;
  std::atomic<ThreadWaits::Place> place{0};  // 0: it does not wait
  std::atomic<std::uint64_t> since_ns{0};    // or since it is back from a task
  RegionEnd end;
  // Waits that tasks interrupt.
  std::uint32_t tasks = 0;  // nested tasks that it executes
  struct Interrupted {
    ThreadWaits::Place place = 0;
    RegionEnd end;
  };
  Interrupted interrupted[most_nested] = {};
  // In the list of those at the end of a region that it did not begin.
  ToldRegion behind = 0;  // the earlier value of the region's word
  std::uint64_t site = 0;
};

// Thread-local storage holds only a pointer: it takes room in all programs, whether or not they use OpenMP.
constinit thread_local ToldWait* the_told_wait __attribute__((tls_model("initial-exec"))) = nullptr;

/// Gives memory to new threads. Does not reuse that of ended threads, since others may still look at it.
class ToldWaitMemory {
 public:
  /// Null: there is no more, or another thread is here right now, and the wait goes unmeasured.
  ToldWait* take() {
    const TryLock lock(taking_, runtime().pid);
    if (!lock.held()) {
      return nullptr;
    }
    if (left_ == 0) {
      void* const memory = chunks_ < most_chunks ? map_own_memory(chunk_bytes) : nullptr;
      if (memory == nullptr) {
        return nullptr;
      }
      ++chunks_;
      next_ = static_cast<ToldWait*>(memory);  // all zero, as a new one is
      left_ = chunk_bytes / sizeof(ToldWait);
    }
    --left_;
    return next_++;
  }

 private:
  static constexpr std::size_t chunk_bytes = std::size_t{64} << 10U;
  static constexpr std::uint32_t most_chunks = 64;
  ProcessFlag taking_;
  std::uint32_t chunks_ = 0;
  std::size_t left_ = 0;
  ToldWait* next_ = nullptr;
};
constinit ToldWaitMemory told_wait_memory;

/// The wait lasts until the runtime library reports its end: leaving a frame does not end it.
constexpr std::uint64_t no_told_frame = ~std::uint64_t{0};

void begin(ToldWait& told, ThreadWaits::Place place, std::uint64_t now_ns) {
  told.since_ns.store(now_ns, std::memory_order_relaxed);
  told.place.store(place, std::memory_order_relaxed);
  told.table->place.store(place, std::memory_order_relaxed);
  told.table->frame.store(no_told_frame, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  told.table->since_ns.store(now_ns, std::memory_order_relaxed);
}

/// Counts the time until `now_ns`, as so many waits.
void end(ToldWait& told, std::uint64_t now_ns, std::uint32_t waits) {
  const ThreadWaits::Place place = told.place.exchange(0, std::memory_order_relaxed);
  const std::uint64_t since_ns = told.since_ns.load(std::memory_order_relaxed);
  told.table->since_ns.store(0, std::memory_order_relaxed);
  add_wait(*told.table, place, now_ns > since_ns ? now_ns - since_ns : 0, waits);
}

/// The calling thread's, if it is observed and its waits are measured.
ToldWait* told_wait() {
  const OwnWaits* const own = measures_waits() ? own_waits() : nullptr;
  if (own == nullptr) {
    return nullptr;
  }
  if (the_told_wait == nullptr) {
    the_told_wait = told_wait_memory.take();
  }
  if (the_told_wait != nullptr) {
    the_told_wait->table = own->table;
  }
  return the_told_wait;
}

/// The time at which the calling thread begins to wait; 0: it does not, since it does already.
std::uint64_t beginning(const ToldWait& told) {
  return told.table->since_ns.load(std::memory_order_relaxed) == 0 ? wait_clock_ns() : 0;
}

/// A region's word: the address that began it, or, with a mark, the last of its other threads to come to its end.
constexpr ToldRegion is_thread = 1;
ToldWait* thread_in(ToldRegion region) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the word is one of both
  return (region & is_thread) != 0 ? reinterpret_cast<ToldWait*>(region & ~is_thread) : nullptr;
}
std::uint64_t site_in(ToldRegion region) {
  const ToldWait* const thread = thread_in(region);
  return thread != nullptr ? thread->site : region >> 1U;
}

/// All threads are at the region's end: they wait no longer.
void open_region_end(ToldWait& beginner, std::uint64_t now_ns) {
  const ToldRegion last = __atomic_load_n(beginner.end.begun, __ATOMIC_ACQUIRE);
  std::uint64_t opened_ns = beginner.since_ns.load(std::memory_order_relaxed);
  for (const ToldWait* one = thread_in(last); one != nullptr; one = thread_in(one->behind)) {
    opened_ns = std::max(opened_ns, one->since_ns.load(std::memory_order_relaxed));
  }
  for (ToldWait* one = thread_in(last); one != nullptr; one = thread_in(one->behind)) {
    if (one->place.load(std::memory_order_relaxed) != 0) {
      end(*one, std::min(opened_ns, now_ns), 1);
    }
  }
}

}  // namespace

void begin_told_wait(WaitKind kind, const void* site) {
  ToldWait* const told = told_wait();
  if (const std::uint64_t now_ns = told != nullptr ? beginning(*told) : 0; now_ns != 0) {
    told->end = {};
    begin(*told, ThreadWaits::place_of(kind, reinterpret_cast<std::uint64_t>(site)), now_ns);
  }
}

void end_told_wait() {
  ToldWait* const told = told_wait();
  if (told == nullptr || told->place.load(std::memory_order_relaxed) == 0) {
    return;
  }
  const std::uint64_t now_ns = wait_clock_ns();
  if (told->end.begun != nullptr) {
    open_region_end(*told, now_ns);
  } else if (told->end.at) {  // nobody knows when it opened
    told->place.store(0, std::memory_order_relaxed);
    told->table->since_ns.store(0, std::memory_order_relaxed);
    return;
  }
  end(*told, now_ns, 1);
}

void begin_told_task() {
  ToldWait* const told = told_wait();
  if (told == nullptr) {
    return;
  }
  const ThreadWaits::Place place = told->place.load(std::memory_order_relaxed);
  if (told->tasks < most_nested) {
    told->interrupted[told->tasks] = {place, told->end};
  }
  ++told->tasks;
  if (place != 0) {
    end(*told, wait_clock_ns(), 0);
  }
}

void end_told_task() {
  ToldWait* const told = told_wait();
  if (told == nullptr || told->tasks == 0) {
    return;
  }
  --told->tasks;
  const auto before = told->tasks < most_nested ? told->interrupted[told->tasks] : ToldWait::Interrupted{};
  if (const std::uint64_t now_ns = before.place != 0 ? beginning(*told) : 0; now_ns != 0) {
    told->end = before.end;
    begin(*told, before.place, now_ns);
  }
}

ToldRegion told_region_of(const void* site) { return reinterpret_cast<std::uint64_t>(site) << 1U; }

bool is_begun_from(const ToldRegion& region, const void* site) {
  return site_in(__atomic_load_n(&region, __ATOMIC_ACQUIRE)) == reinterpret_cast<std::uint64_t>(site);
}

void begin_told_region_end(ToldRegion& region, bool begun_it) {
  ToldWait* const told = told_wait();
  const std::uint64_t now_ns = told != nullptr ? beginning(*told) : 0;
  if (now_ns == 0) {
    return;
  }
  ToldRegion before = __atomic_load_n(&region, __ATOMIC_ACQUIRE);
  const std::uint64_t site = site_in(before);
  told->end = {true, begun_it ? &region : nullptr};
  begin(*told, ThreadWaits::place_of(WaitKind::team, site), now_ns);
  if (begun_it) {
    return;
  }
  told->site = site;
  do {
    told->behind = before;
  } while (!__atomic_compare_exchange_n(&region, &before, reinterpret_cast<std::uint64_t>(told) | is_thread, true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
}

}  // namespace crosstalk::in_target
