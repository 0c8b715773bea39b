// SPDX-License-Identifier: Apache-2.0
// The rules of this folder. Everything here runs inside somebody else's process.
//
//  1. In a signal handler: no allocation, no lock that can wait for the interrupted code, no loop without
//     a bound, no libc call but memcpy and memset. System calls go through `system_call` (below), which
//     touches neither errno nor anything that the target may have interposed.
//  2. Memory of the target is read with read_memory() only: the kernel reads it, so a bad address is an
//     error and a watched address does not trap.
//  3. Memory for our own state is static (touched when used) or the arena. Nothing is ever freed.
//  4. Exit status, signals and masks, errno, descriptors, limits and children are the target's. We put
//     back our changes, and change nothing that we cannot put back.
//  5. A thread is known by its kernel id through the registry, not by thread-local storage: raw clone()
//     threads may share it, and a library loaded late may not get any.
//  6. On any doubt step aside: stop observing, say so with emit_message(), go on as if we were not there.
#pragma once

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/random.h"

namespace crosstalk::in_target {

/// A system call; returns the kernel's answer: >= 0, or -errno. Does not touch errno. Signal-safe.
template <class... Args>
inline long system_call(long number, Args... args) {
  static_assert(sizeof...(Args) <= 6);
  const long a[6] = {(long)(args)...};  // NOLINT: pointers and integers alike are register values here
  register long r10 asm("r10") = a[3];
  register long r8 asm("r8") = a[4];
  register long r9 asm("r9") = a[5];
  long result = number;
  asm volatile("syscall"
               : "+a"(result)
               : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

inline std::int32_t kernel_thread_id() { return static_cast<std::int32_t>(system_call(SYS_gettid)); }
inline std::int32_t kernel_process_id() { return static_cast<std::int32_t>(system_call(SYS_getpid)); }

/// The kernel's own clock_gettime, in the vdso: libc's may be another library's (libfaketime), which is no function to
/// call in a handler. Set at the start, and null if the program has no vdso or may not read the time stamp; then the
/// system call is used.
using ClockGettime = int (*)(clockid_t, timespec*);
inline constinit std::atomic<ClockGettime> vdso_clock_gettime{nullptr};

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  if (const ClockGettime fast = vdso_clock_gettime.load(std::memory_order_relaxed); fast != nullptr) {
    fast(clock, &t);
  } else {
    system_call(SYS_clock_gettime, clock, &t);
  }
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(t.tv_nsec);
}
inline std::uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
/// The clock of a thread's CPU time: the kernel's MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED). clock_ns() of it is 0 if
/// the thread has ended.
inline clockid_t thread_cpu_clock(std::int32_t tid) {
  return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3U) | 6U);
}
/// CPU time of the calling thread, nanoseconds.
inline std::uint64_t thread_cpu_ns() { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

/// Copies target memory; returns the bytes that could be read from the front. Signal-safe, never faults,
/// never triggers a watchpoint.
inline std::size_t read_memory(std::uint64_t address, void* out, std::size_t bytes, std::int32_t pid) {
  const iovec local{out, bytes};
  const iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT: an address of the target
  const long got = system_call(SYS_process_vm_readv, pid, &local, 1, &remote, 1, 0);
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

/// True if the page of `address` is in memory. Reading another one may ask the server of a userfaultfd for it, or a
/// disk.
inline bool is_present(std::uint64_t address) {
  constexpr std::uint64_t page = 4096;
  unsigned char residency = 0;
  return system_call(SYS_mincore, address & ~(page - 1), page, &residency) == 0 && (residency & 1U) != 0;
}

/// The processor that the calling thread runs on: Linux keeps node << 12 | cpu as the limit of a segment, for the
/// vdso's getcpu(). RDTSCP would tell it, too, but faults if the program has forbidden time stamps (PR_SET_TSC).
inline std::uint16_t current_cpu() {
  constexpr std::uint32_t segment = 0x7b;  // GDT_ENTRY_CPUNODE, asm/segment.h
  std::uint32_t limit = 0;
  asm volatile("lsl %1, %0" : "+r"(limit) : "r"(segment) : "cc");
  return static_cast<std::uint16_t>(limit & 0xfffU);
}

inline std::uint64_t fs_base() {
  std::uint64_t base = 0;
  asm("movq %%fs:0, %0" : "=r"(base));  // the thread control block begins with its own address
  return base;
}

}  // namespace crosstalk::in_target
