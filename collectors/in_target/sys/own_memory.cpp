// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/own_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <atomic>

#include "base/library_limits.h"
#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {
namespace {

// A place of the list is taken by its `begin`, and the range is in the list once `end` is set.
struct Range {
  std::atomic<std::uint64_t> begin, end;
};
constexpr std::uint32_t most_ranges = 2048;
constinit Range ranges[most_ranges] = {};
constinit std::atomic<std::uint32_t> range_count{0};
constinit std::atomic<std::size_t> total{0};

// We take at most one part in `own_part` of a limited address space, and leave one in `free_part` of it free.
constexpr std::uint64_t own_part = 16;
constexpr std::uint64_t free_part = 8;

struct Usage {
  std::uint64_t mapped = 0, data = 0;  // bytes of address space, and of private writable memory
};

/// /proc/self/statm: seven decimal numbers of pages; the first is the size, the sixth data and stack.
bool read_usage(Usage& usage) {
  char text[128];
  const long fd = system_call(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  const long got = system_call(SYS_read, fd, static_cast<char*>(text), sizeof text);
  system_call(SYS_close, fd);
  std::uint64_t number[7] = {};
  std::size_t at = 0;
  for (long i = 0; i < got && at < 7; ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      number[at] = number[at] * 10 + static_cast<std::uint64_t>(text[i] - '0');
    } else {
      ++at;
    }
  }
  usage = {number[0] * page_bytes, number[5] * page_bytes};
  return got > 0;
}

bool within(std::uint64_t limit, std::uint64_t least, std::uint64_t used, std::uint64_t more, std::uint64_t own) {
  return limit == RLIM64_INFINITY ||
         (limit >= least && own <= limit / own_part && used + more <= limit - limit / free_part);
}

}  // namespace

bool has_room_for(std::size_t bytes, std::size_t passing) {
  rlimit64 space{};
  rlimit64 data{};
  if (system_call(SYS_prlimit64, 0, RLIMIT_AS, nullptr, &space) < 0 ||
      system_call(SYS_prlimit64, 0, RLIMIT_DATA, nullptr, &data) < 0) {
    return false;
  }
  if (space.rlim_cur == RLIM64_INFINITY && data.rlim_cur == RLIM64_INFINITY) {
    return true;
  }
  Usage usage;
  const std::size_t own = own_memory_bytes() + bytes;
  return read_usage(usage) && within(space.rlim_cur, least_space_limit, usage.mapped, bytes + passing, own) &&
         within(data.rlim_cur, least_data_limit, usage.data, bytes, own);
}

bool enter_own_memory(void* begin, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(begin);  // NOLINT: an address
  std::uint32_t place = 0;
  for (std::uint64_t nothing = 0; !ranges[place].begin.compare_exchange_strong(nothing, address); nothing = 0) {
    if (++place == most_ranges) {
      return false;
    }
  }
  std::uint32_t used = range_count.load(std::memory_order_relaxed);
  while (used <= place && !range_count.compare_exchange_weak(used, place + 1, std::memory_order_relaxed)) {
  }
  ranges[place].end.store(address + bytes, std::memory_order_release);
  total.fetch_add(bytes, std::memory_order_relaxed);
  system_call(SYS_madvise, begin, bytes, MADV_DONTDUMP);
  return true;
}

void leave_own_memory(const void* begin) {
  const auto address = reinterpret_cast<std::uint64_t>(begin);  // NOLINT: an address
  const std::uint32_t used = range_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) {
    if (ranges[i].begin.load(std::memory_order_relaxed) == address) {
      const std::uint64_t end = ranges[i].end.exchange(0, std::memory_order_acq_rel);
      total.fetch_sub(end - address, std::memory_order_relaxed);
      ranges[i].begin.store(0, std::memory_order_release);
      return;
    }
  }
}

// Inaccessible at first: under mlockall(MCL_FUTURE) the kernel would populate it at once.
void* map_own_memory(std::size_t bytes) {
  if (!has_room_for(bytes)) {
    return nullptr;
  }
  const long at = system_call(SYS_mmap, nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at < 0) {
    return nullptr;
  }
  auto* memory = reinterpret_cast<void*>(at);  // NOLINT: the kernel's answer
  system_call(SYS_munlock, memory, bytes);
  if (system_call(SYS_mprotect, memory, bytes, PROT_READ | PROT_WRITE) < 0 || !enter_own_memory(memory, bytes)) {
    system_call(SYS_munmap, memory, bytes);
    return nullptr;
  }
  return memory;
}

bool is_own_memory(std::uint64_t address) {
  const std::uint32_t used = range_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t end = ranges[i].end.load(std::memory_order_acquire);
    if (address < end && address >= ranges[i].begin.load(std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

std::size_t own_memory_bytes() { return total.load(std::memory_order_relaxed); }

void unlock_own_memory() {
  const std::uint32_t used = range_count.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) {
    const std::uint64_t end = ranges[i].end.load(std::memory_order_acquire);
    const std::uint64_t begin = ranges[i].begin.load(std::memory_order_relaxed);
    if (end != 0) {
      system_call(SYS_munlock, begin, end - begin);
    }
  }
}

}  // namespace crosstalk::in_target
