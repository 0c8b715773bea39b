// SPDX-License-Identifier: Apache-2.0
#include "collectors/observer/arena_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

namespace crosstalk::observer {

using profile::SlotState;

std::optional<MappedMemory> MappedMemory::map(int fd, std::uint64_t offset, std::size_t bytes) {
  void* memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) {
    return std::nullopt;
  }
  return MappedMemory(static_cast<std::byte*>(memory), bytes);
}

MappedMemory::~MappedMemory() {
  if (begin_ != nullptr) {
    ::munmap(begin_, bytes_);
  }
}

ArenaRing::ArenaRing(profile::ThreadSlot& slot, std::uint32_t index, MappedMemory memory, std::uint32_t ring_bytes)
    : slot_(&slot), index_(index), memory_(std::move(memory)) {
  writer_.attach(&slot, memory_.begin(), ring_bytes);
}

void ArenaRing::go_live() {
  slot_->state.store(static_cast<std::uint32_t>(SlotState::live), std::memory_order_release);
}

void ArenaRing::end() {
  writer_.detach();
  slot_->state.store(static_cast<std::uint32_t>(SlotState::ended), std::memory_order_release);
}

Result<ArenaAccess> ArenaAccess::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) != 0) {
    return fail(ErrorCode::system, "cannot open the arena " + path + ": " + std::strerror(errno));
  }
  std::optional<MappedMemory> first = MappedMemory::map(fd.get(), 0, sizeof(profile::ArenaHeader));
  if (!first) {
    return fail(ErrorCode::system, "cannot map the arena " + path + ": " + std::strerror(errno));
  }
  const profile::ArenaView view{reinterpret_cast<profile::ArenaHeader*>(first->begin())};
  if (!view.valid(static_cast<std::size_t>(status.st_size))) {
    return fail(ErrorCode::corrupt, path + " is not an arena of this version");
  }
  std::optional<MappedMemory> before_rings = MappedMemory::map(fd.get(), 0, view.header->rings_offset);
  if (!before_rings) {
    return fail(ErrorCode::system, "cannot map the arena " + path + ": " + std::strerror(errno));
  }
  return ArenaAccess(std::move(fd), std::move(*before_rings));
}

ArenaAccess::ArenaAccess(UniqueFd fd, MappedMemory memory)
    : fd_(std::move(fd)), memory_(std::move(memory)), view_{reinterpret_cast<profile::ArenaHeader*>(memory_.begin())} {}

std::unique_ptr<ArenaRing> ArenaAccess::claim(std::int32_t pid, std::int32_t tid) {
  profile::ArenaHeader& arena = header();
  for (std::uint32_t index = 0; index < arena.slot_count; ++index) {
    profile::ThreadSlot& slot = *view_.slot(index);
    auto state = static_cast<std::uint32_t>(SlotState::free);
    if (slot.state.load(std::memory_order_relaxed) != state ||
        !slot.state.compare_exchange_strong(state, static_cast<std::uint32_t>(SlotState::claimed),
                                            std::memory_order_acq_rel)) {
      continue;
    }
    std::optional<MappedMemory> ring =
        MappedMemory::map(fd_.get(), arena.rings_offset + std::uint64_t{index} * profile::ring_stride(arena.ring_bytes),
                          arena.ring_bytes);
    if (!ring) {
      slot.state.store(static_cast<std::uint32_t>(SlotState::free), std::memory_order_release);
      arena.threads_without_memory.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    slot.pid.store(pid, std::memory_order_relaxed);
    slot.tid.store(tid, std::memory_order_relaxed);
    slot.from_outside.store(1, std::memory_order_relaxed);
    return std::make_unique<ArenaRing>(slot, index, std::move(*ring), arena.ring_bytes);
  }
  arena.threads_unobserved.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace crosstalk::observer
