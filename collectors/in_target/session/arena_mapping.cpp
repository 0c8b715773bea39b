// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/session/arena_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/library_limits.h"
#include "collectors/in_target/contract/core.h"
#include "collectors/in_target/core/runtime.h"
#include "collectors/in_target/sys/hidden_numbers.h"
#include "collectors/in_target/sys/own_memory.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

void* map_shared(long fd, std::size_t bytes) {
  const long at = system_call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  return at < 0 ? nullptr : reinterpret_cast<void*>(at);  // NOLINT: the kernel's answer
}

struct ArenaShape {
  std::size_t rings_offset = 0;
  std::uint32_t slot_count = 0, ring_bytes = 0;
};

bool is_at_least(int resource, std::uint64_t least) {
  rlimit64 limit{};
  return system_call(SYS_prlimit64, 0, resource, nullptr, &limit) == 0 && limit.rlim_cur >= least;
}

// Checks limits other than those of memory, for which the memory in use counts, too (has_room_for()).
bool limits_leave_room() {
  return is_at_least(RLIMIT_STACK, least_stack_limit) && is_at_least(RLIMIT_RTTIME, least_real_time_limit);
}

// True if it is an arena of a running session with room for this process's first needs. Maps the header only for this
// check.
bool check_arena(long fd, ArenaShape& shape) {
  struct stat status {};
  if (system_call(SYS_fstat, fd, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(profile::ArenaHeader))) {
    return false;
  }
  auto* const header = static_cast<profile::ArenaHeader*>(map_shared(fd, sizeof(profile::ArenaHeader)));
  if (header == nullptr) {
    return false;
  }
  const bool running =
      profile::ArenaView{header}.valid(static_cast<std::size_t>(status.st_size)) &&
      header->state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(profile::SessionState::running);
  shape = {header->rings_offset, header->slot_count, header->ring_bytes};
  const bool room =
      limits_leave_room() &&
      has_room_for(shape.rings_offset + RingMemory::rings_a_chunk * profile::ring_stride(shape.ring_bytes));
  if (running && !room) {
    header->processes_without_room.fetch_add(1, std::memory_order_relaxed);
  }
  system_call(SYS_munmap, header, sizeof(profile::ArenaHeader));
  return running && room;
}

// Maps what comes before the rings.
bool map_arena_of(long fd) {
  Runtime& r = runtime();
  ArenaShape shape;
  if (!check_arena(fd, shape)) {
    return false;
  }
  auto* const memory = static_cast<std::byte*>(map_shared(fd, shape.rings_offset));
  if (memory == nullptr) {
    return false;
  }
  if (!r.rings.start(memory + shape.rings_offset, shape.slot_count, shape.ring_bytes)) {
    system_call(SYS_munmap, memory, shape.rings_offset);
    return false;
  }
  enter_own_memory(memory, shape.rings_offset);
  r.arena.header = reinterpret_cast<profile::ArenaHeader*>(memory);
  r.config = r.arena.header->config;
  r.memory = r.arena.header->memory;
  r.memory.events = r.memory.events <= profile::most_memory_events ? r.memory.events : 0;
  r.slot_count = shape.slot_count;
  return true;
}

}  // namespace

bool map_arena(const char* name) {
  const long fd = system_call(SYS_openat, AT_FDCWD, name, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  const bool mapped = map_arena_of(fd);
  if (mapped) {
    reserve_hidden_numbers(static_cast<int>(fd));
  }
  system_call(SYS_close, fd);
  return mapped;
}

bool next_program_has_room() {
  if (limits_leave_room() && is_at_least(RLIMIT_AS, least_space_limit) && is_at_least(RLIMIT_DATA, least_data_limit)) {
    return true;
  }
  if (profile::ArenaHeader* const header = runtime().arena.header; header != nullptr) {
    header->processes_without_room.fetch_add(1, std::memory_order_relaxed);
  }
  return false;
}

}  // namespace crosstalk::in_target
