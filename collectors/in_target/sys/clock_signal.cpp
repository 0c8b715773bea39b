// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/sys/clock_signal.h"

#include <atomic>

namespace crosstalk::in_target {
namespace {

constinit KernelAction own_action;
// libc has one handler for the process's life: its action is written once, before `found_handler` says so.
constinit KernelAction found_first;
constinit KernelAction found_later;
constinit std::atomic<const KernelAction*> found_action{&found_first};
constinit std::atomic<bool> taken{false};

}  // namespace

bool take_clock_signal(void (*handler)(int, siginfo_t*, void*), std::uint64_t flags) {
  if (taken.load(std::memory_order_relaxed)) {
    return true;  // a forked child goes on
  }
  KernelAction of_libc;  // a handler that libc has installed has libc's return code, which unwinders know
  if (get_kernel_action(SIGTRAP, of_libc) < 0 || of_libc.restorer == nullptr ||
      get_kernel_action(clock_signal, found_first) < 0) {
    return false;
  }
  constexpr std::uint64_t sa_restorer = 0x04000000;
  own_action.handler = handler;
  own_action.flags = flags | sa_restorer;
  own_action.restorer = of_libc.restorer;
  own_action.mask = every_signal;
  if (set_kernel_action(clock_signal, own_action) < 0) {
    return false;
  }
  taken.store(true, std::memory_order_release);
  return true;
}

bool has_clock_signal() { return taken.load(std::memory_order_relaxed); }

void keep_clock_signal() {
  KernelAction now;
  if (!taken.load(std::memory_order_acquire) || get_kernel_action(clock_signal, now) < 0 ||
      now.handler == own_action.handler) {
    return;
  }
  if (found_action.load(std::memory_order_relaxed) == &found_first) {
    found_later = now;  // two threads that come here together write the same
    found_action.store(&found_later, std::memory_order_release);
  }
  set_kernel_action(clock_signal, own_action);
}

void release_clock_signal() {
  if (taken.exchange(false)) {
    set_kernel_action(clock_signal, clock_signal_wish());
  }
}

KernelAction clock_signal_wish() { return *found_action.load(std::memory_order_acquire); }

}  // namespace crosstalk::in_target
