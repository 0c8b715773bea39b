// SPDX-License-Identifier: Apache-2.0
// Signal dispositions as the kernel has them. libc's sigaction() refuses the signals that libc keeps for itself, and
// adds by itself the code that a handler returns to.
#pragma once

#include <signal.h>

#include <cstdint>

#include "collectors/in_target/sys/system_calls.h"

namespace crosstalk::in_target {

/// The kernel's struct sigaction of x86-64.
struct KernelAction {
  void (*handler)(int, siginfo_t*, void*) = nullptr;
  std::uint64_t flags = 0;
  void (*restorer)() = nullptr;
  std::uint64_t mask = 0;
};
static_assert(sizeof(KernelAction) == 32);

inline constexpr std::uint64_t every_signal = ~std::uint64_t{0};

/// A signal's bit in a mask; 0 for a signal that does not exist.
constexpr std::uint64_t bit_in_mask(int signal_number) {
  return signal_number <= 0 || signal_number > 64 ? 0 : std::uint64_t{1} << static_cast<unsigned>(signal_number - 1);
}

/// 0 or -errno. Signal-safe, like the next one.
inline long get_kernel_action(int signal_number, KernelAction& out) {
  return system_call(SYS_rt_sigaction, signal_number, nullptr, &out, sizeof out.mask);
}
inline long set_kernel_action(int signal_number, const KernelAction& action) {
  return system_call(SYS_rt_sigaction, signal_number, &action, nullptr, sizeof action.mask);
}

}  // namespace crosstalk::in_target
