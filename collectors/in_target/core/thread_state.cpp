// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/core/thread_state.h"

#include "collectors/in_target/sys/own_memory.h"

namespace crosstalk::in_target {

namespace {
constexpr std::uint32_t tid_shift = 32;
std::uint64_t entry_of(std::int32_t tid, std::uint32_t index) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(tid)) << tid_shift) |
         (static_cast<std::uint64_t>(index) << 1U);
}
}  // namespace

ThreadState* Registry::find(std::int32_t tid) {
  std::uint32_t at = hash(tid);
  for (std::uint32_t probe = 0; probe < probe_limit; ++probe, at = (at + 1) % table_size) {
    const std::uint64_t entry = table_[at].load(std::memory_order_acquire);
    if (entry == 0) {
      return nullptr;
    }
    if (entry != tombstone && static_cast<std::int32_t>(entry >> tid_shift) == tid) {
      return &this->at(static_cast<std::uint32_t>(entry) >> 1U);
    }
  }
  return nullptr;
}

// Maps the memory of the state at `index`. Zeroed memory is a free state. If two threads map it at once, one mapping
// stays unused: it is small, and not worth waiting for each other.
bool Registry::provide(std::uint32_t index) {
  if (index < chunk_threads) {
    return true;
  }
  std::atomic<ThreadState*>& place = more_[index / chunk_threads - 1];
  if (place.load(std::memory_order_acquire) != nullptr) {
    return true;
  }
  constexpr std::size_t bytes = (chunk_threads * sizeof(ThreadState) + page_bytes - 1) & ~(page_bytes - 1);
  auto* const memory = static_cast<ThreadState*>(map_own_memory(bytes));
  ThreadState* none = nullptr;
  return memory != nullptr &&
         (place.compare_exchange_strong(none, memory, std::memory_order_acq_rel) || none != nullptr);
}

ThreadState* Registry::add(std::int32_t tid) {
  for (std::uint32_t i = 0; i < max_threads && provide(i); ++i) {
    ThreadState& thread = this->at(i);
    auto expected = static_cast<std::uint32_t>(ThreadPhase::free);
    if (thread.phase.load(std::memory_order_relaxed) != expected ||
        !thread.phase.compare_exchange_strong(expected, static_cast<std::uint32_t>(ThreadPhase::starting))) {
      continue;
    }
    thread.index = i;
    thread.tid.store(tid, std::memory_order_relaxed);
    std::uint32_t extent = extent_.load(std::memory_order_relaxed);
    while (extent <= i && !extent_.compare_exchange_weak(extent, i + 1)) {
    }
    std::uint32_t at = hash(tid);
    for (std::uint32_t probe = 0; probe < probe_limit; ++probe, at = (at + 1) % table_size) {
      std::uint64_t seen = table_[at].load(std::memory_order_relaxed);
      if (seen <= tombstone && table_[at].compare_exchange_strong(seen, entry_of(tid, i))) {
        live_.fetch_add(1, std::memory_order_relaxed);
        return &thread;
      }
    }
    thread.phase.store(static_cast<std::uint32_t>(ThreadPhase::free));
    return nullptr;
  }
  return nullptr;
}

void Registry::remove(ThreadState& thread) {
  const std::int32_t tid = thread.tid.load(std::memory_order_relaxed);
  std::uint32_t at = hash(tid);
  for (std::uint32_t probe = 0; probe < probe_limit; ++probe, at = (at + 1) % table_size) {
    const std::uint64_t entry = table_[at].load(std::memory_order_relaxed);
    if (entry == 0) {
      break;
    }
    if (entry == entry_of(tid, thread.index)) {
      table_[at].store(tombstone, std::memory_order_release);
      break;
    }
  }
  thread.tid.store(0, std::memory_order_relaxed);
  live_.fetch_sub(1, std::memory_order_relaxed);
  thread.phase.store(static_cast<std::uint32_t>(ThreadPhase::free), std::memory_order_release);
}

void Registry::clear() {
  const std::uint32_t extent = extent_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < extent; ++i) {
    ThreadState& thread = at(i);
    thread.phase.store(static_cast<std::uint32_t>(ThreadPhase::free), std::memory_order_relaxed);
    thread.tid.store(0, std::memory_order_relaxed);
    thread.watch_events.store(0, std::memory_order_relaxed);
    thread.watchpoints = nullptr;  // in an arena that may be gone
  }
  for (auto& entry : table_) {
    if (entry.load(std::memory_order_relaxed) != 0) {
      entry.store(0, std::memory_order_relaxed);
    }
  }
  extent_.store(0, std::memory_order_relaxed);
  live_.store(0, std::memory_order_relaxed);
}

}  // namespace crosstalk::in_target
