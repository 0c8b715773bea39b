// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/watch/common_watches.h"

#include <bit>

#include "collectors/in_target/processes/shared_maps.h"
#include "collectors/in_target/processes/shared_memory.h"

namespace crosstalk::in_target {
namespace {

constexpr std::uint64_t abandoned_ns = 1'000'000'000;  // beyond its end; the process that was to close it is dead

// A thread that opens a watch holds this lock until the watch is published, some microseconds. If its process is killed
// meanwhile, the lock counts as abandoned after a time.
bool take_lock(SharedWatch& common, std::uint64_t now_ns) {
  std::uint64_t since = common.lock.load(std::memory_order_relaxed);
  return (since == 0 || now_ns > since + abandoned_ns) &&
         common.lock.compare_exchange_strong(since, now_ns, std::memory_order_acquire);
}

}  // namespace

bool claim_common(WatchSlot& slot, const SharedLine& line, std::uint64_t now_ns) {
  SharedWatch& common = cross_process_state().watch[slot.index];
  std::uint32_t old = common.watch.load(std::memory_order_acquire);
  if ((old != 0 && now_ns < common.progress.deadline_ns() + abandoned_ns) || !take_lock(common, now_ns)) {
    return false;
  }
  if (common.watch.load(std::memory_order_relaxed) != old ||
      (old != 0 && !common.watch.compare_exchange_strong(old, 0))) {
    common.lock.store(0, std::memory_order_release);
    return false;
  }
  common.device.store(line.device, std::memory_order_relaxed);
  common.inode.store(line.inode, std::memory_order_relaxed);
  common.file_offset.store(line.file_offset, std::memory_order_relaxed);
  slot.shared = &common;
  return true;
}

void publish_common(WatchSlot& slot) {
  SharedWatch& common = *slot.shared;
  common.suspected.store(slot.suspected.load(std::memory_order_relaxed) ? 1 : 0, std::memory_order_relaxed);
  common.words.store(slot.choice.words, std::memory_order_relaxed);
  for (std::uint32_t w = 0; w < slot.choice.words; ++w) {
    common.word[w].store(std::bit_cast<std::uint64_t>(slot.choice.word[w]), std::memory_order_relaxed);
  }
  common.watch.store(slot.watch.load(std::memory_order_relaxed), std::memory_order_release);
  common.lock.store(0, std::memory_order_release);
}

CommonWatch find_common(std::uint32_t index, std::uint64_t now_ns) {
  const SharedWatch& common = cross_process_state().watch[index];
  const std::uint32_t id = common.watch.load(std::memory_order_acquire);
  if (id == 0 || common.progress.expired(now_ns)) {
    return {};
  }
  CommonWatch found;
  found.line.device = common.device.load(std::memory_order_relaxed);
  found.line.inode = common.inode.load(std::memory_order_relaxed);
  found.line.file_offset = common.file_offset.load(std::memory_order_relaxed);
  found.line.known = found.line.others = true;
  found.words = common.words.load(std::memory_order_relaxed);
  found.address = shared_maps().address_of(found.line.device, found.line.inode, found.line.file_offset);
  const bool can_be_joined = found.address != 0 && found.words != 0 && found.words <= words_per_slot;
  found.id = can_be_joined ? id : 0;
  return found;
}

bool adopt_common(WatchSlot& slot, const CommonWatch& found) {
  SharedWatch& common = cross_process_state().watch[slot.index];
  slot.shared = &common;
  slot.identity = found.line;
  slot.line = found.address;
  slot.choice.words = found.words;
  for (std::uint32_t w = 0; w < found.words; ++w) {
    slot.choice.word[w] = std::bit_cast<profile::WatchWord>(common.word[w].load(std::memory_order_relaxed));
  }
  slot.suspected.store(common.suspected.load(std::memory_order_relaxed) != 0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_acquire);
  return common.watch.load(std::memory_order_relaxed) == found.id;  // else the values may be of two watches
}

bool is_over(const WatchSlot& slot, std::uint32_t id) {
  return slot.shared != nullptr && slot.shared->watch.load(std::memory_order_acquire) != id;
}

bool end_common(WatchSlot& slot, std::uint32_t id) {
  return slot.shared->watch.compare_exchange_strong(id, 0, std::memory_order_acq_rel);
}

}  // namespace crosstalk::in_target
