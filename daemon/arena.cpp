// SPDX-License-Identifier: Apache-2.0
#include "daemon/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>

namespace crosstalk::daemon {
namespace {

constexpr std::uint64_t page = 4096;

std::uint64_t round_up(std::uint64_t bytes) { return (bytes + page - 1) & ~(page - 1); }

constexpr std::uint64_t slot_bytes = sizeof(profile::ThreadSlot) + sizeof(profile::ThreadWaits);

struct Offsets {
  std::uint64_t cross_process, slots, rings, end;
};

Offsets offsets_of(const ArenaShape& shape) {
  Offsets at{};
  at.cross_process = round_up(sizeof(profile::ArenaHeader));
  at.slots = at.cross_process + round_up(profile::cross_process_bytes);
  at.rings = round_up(at.slots + std::uint64_t{shape.slots} * slot_bytes);
  at.end = at.rings + std::uint64_t{shape.slots} * profile::ring_stride(shape.ring_bytes);
  return at;
}

}  // namespace

ArenaShape ArenaShape::within(std::uint64_t most_bytes) {
  constexpr std::uint32_t fewest = 4;
  ArenaShape shape;
  while (shape.slots > fewest && offsets_of(shape).end > most_bytes) {
    shape.slots /= 2;
  }
  return shape;
}

Result<Arena> Arena::create(const profile::SessionConfig& config, ArenaShape shape) {
  Arena arena;
  arena.shape_ = shape;
  const auto [cross_process_offset, slots_offset, rings_offset, bytes] = offsets_of(shape);
  arena.slots_offset_ = slots_offset;
  arena.rings_offset_ = rings_offset;
  arena.chunks_.assign((shape.slots + rings_a_chunk - 1) / rings_a_chunk, nullptr);
  arena.fd_.reset(::memfd_create(profile::arena_name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!arena.fd_.valid() || ::ftruncate(arena.fd_.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(arena.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(ErrorCode::system,
                std::string("cannot make the shared memory for rings: ") + std::strerror(errno) + "; see ulimit -f");
  }
  void* memory =
      ::mmap(nullptr, arena.rings_offset_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, arena.fd_.get(), 0);
  if (memory == MAP_FAILED) {
    return fail(ErrorCode::system, "cannot map " + std::to_string(arena.rings_offset_) +
                                       " bytes of shared memory: " + std::strerror(errno) + "; see ulimit -v");
  }
  auto* header = new (memory) profile::ArenaHeader();
  header->header_bytes = sizeof(profile::ArenaHeader);
  header->total_bytes = bytes;
  header->slot_count = shape.slots;
  header->ring_bytes = shape.ring_bytes;
  header->cross_process_offset = cross_process_offset;
  header->slots_offset = arena.slots_offset_;
  header->rings_offset = arena.rings_offset_;
  header->recorder_pid = ::getpid();
  struct stat pid_namespace = {};
  header->pid_namespace = ::stat("/proc/self/ns/pid", &pid_namespace) == 0 ? pid_namespace.st_ino : 0;
  header->config = config;
  header->state.store(static_cast<std::uint32_t>(profile::SessionState::running), std::memory_order_release);
  arena.view_.header = header;
  return arena;
}

Arena::Arena(Arena&& other) noexcept { *this = std::move(other); }

Arena& Arena::operator=(Arena&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(view_, other.view_);
  std::swap(slots_offset_, other.slots_offset_);
  std::swap(rings_offset_, other.rings_offset_);
  std::swap(shape_, other.shape_);
  std::swap(chunks_, other.chunks_);
  return *this;
}

Arena::~Arena() {
  if (view_.header != nullptr) {
    ::munmap(view_.header, rings_offset_);
  }
  for (std::uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (chunks_[chunk] != nullptr) {
      ::munmap(const_cast<std::byte*>(chunks_[chunk]), chunk_bytes(chunk));
    }
  }
}

profile::ThreadSlot& Arena::slot(std::uint32_t index) const {
  auto* base = reinterpret_cast<std::byte*>(view_.header);
  return reinterpret_cast<profile::ThreadSlot*>(base + slots_offset_)[index];
}

const profile::ThreadWaits& Arena::waits(std::uint32_t index) const {
  const auto* base = reinterpret_cast<const std::byte*>(view_.header);
  return reinterpret_cast<const profile::ThreadWaits*>(
      base + slots_offset_ + std::uint64_t{shape_.slots} * sizeof(profile::ThreadSlot))[index];
}

std::uint64_t Arena::chunk_bytes(std::uint32_t chunk) const {
  return std::min(rings_a_chunk, shape_.slots - chunk * rings_a_chunk) * profile::ring_stride(shape_.ring_bytes);
}

const std::byte* Arena::ring(std::uint32_t index) {
  const std::uint32_t chunk = index / rings_a_chunk;
  if (chunks_[chunk] == nullptr) {
    const std::uint64_t offset =
        rings_offset_ + std::uint64_t{chunk} * rings_a_chunk * profile::ring_stride(shape_.ring_bytes);
    void* memory = ::mmap(nullptr, chunk_bytes(chunk), PROT_READ, MAP_SHARED | MAP_NORESERVE, fd_.get(),
                          static_cast<off_t>(offset));
    chunks_[chunk] = memory == MAP_FAILED ? nullptr : static_cast<const std::byte*>(memory);
  }
  return chunks_[chunk] == nullptr ? nullptr
                                   : chunks_[chunk] + (index % rings_a_chunk) * profile::ring_stride(shape_.ring_bytes);
}

const profile::ThreadRegions* Arena::regions(std::uint32_t index) {
  const std::byte* const of_thread = ring(index);
  return of_thread == nullptr ? nullptr
                              : reinterpret_cast<const profile::ThreadRegions*>(of_thread + shape_.ring_bytes);
}

std::string Arena::path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(fd_.get()); }

Arena::Slots Arena::touched_slots(std::uint32_t index) const {
  constexpr std::uint64_t slot = sizeof(profile::ThreadSlot);
  // Returns the first slot that begins where `what` is found, or behind it.
  const auto find = [&](std::uint32_t from, int what) -> std::uint32_t {
    const off_t at = ::lseek(fd_.get(), static_cast<off_t>(slots_offset_ + from * slot), what);
    const std::uint64_t found =
        at < 0 ? shape_.slots : (static_cast<std::uint64_t>(at) - slots_offset_ + slot - 1) / slot;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(found, shape_.slots));
  };
  const std::uint32_t begin = index < shape_.slots ? find(index, SEEK_DATA) : shape_.slots;
  return {begin, begin < shape_.slots ? find(begin, SEEK_HOLE) : begin};
}

std::uint64_t Arena::bytes_in_use() const {
  struct stat status = {};
  return ::fstat(fd_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512 : 0;
}

bool recorded_itself() {
  const std::string mapped = std::string("/memfd:") + profile::arena_name;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(mapped) != std::string::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace crosstalk::daemon
