// SPDX-License-Identifier: Apache-2.0
// The tests' guest is a preloaded library of the real interposed functions around a core that observes nothing and
// records the calls. The programs under test query it through these functions.
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" {

struct GuestBlock {
  std::uint64_t begin, bytes, site;
  int is_mapping, first_report;
};
struct GuestModule {
  char path[512];
  std::uint64_t bias, begin, end, tls_size, time_ns;
  std::int64_t tls_offset;
  int build_id_size, is_vdso, unloaded;
};

/// Counts of past events.
enum GuestEvent {
  guest_before_exec,
  guest_exec_failed,
  guest_seccomp,
  guest_trap,
  guest_clock_signal,
  guest_signal_taken,
  guest_unobserved,
  guest_withdrawn,
  guest_found_arena,
  guest_wait,  // that would have been measured
  guest_events
};

int guest_find_block(const void* address, GuestBlock* out);
unsigned guest_blocks_made();  // by the calling thread, so far
int guest_count(int event);
/// 1: the kernel has the guest's handler for the signal.
int guest_owns(int signal_number);
/// The calling thread's mask as the kernel has it: bit signal - 1.
std::uint64_t guest_kernel_mask();
/// sa_mask that the kernel has for a signal.
std::uint64_t guest_kernel_action_mask(int signal_number);
int guest_module(unsigned index, GuestModule* out);
void guest_note_code(const void* address);
void guest_track_blocks(int on, std::uint64_t threshold);
void guest_blocks_after_fork();
void guest_be_alone(int alone);  // 1: no other thread is known
/// The calls that core makes around pthread_create.
std::uint8_t guest_mask_shadow();
void guest_inherit_mask_shadow(std::uint8_t bits);
void guest_adopt_thread_mask();
/// The handler the target wants for the trap signal.
void* guest_wished_trap_handler();
}

#define GUEST(function) reinterpret_cast<decltype(&function)>(dlsym(RTLD_DEFAULT, #function))

#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                               \
    }                                                                              \
  } while (false)
