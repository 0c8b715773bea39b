// SPDX-License-Identifier: Apache-2.0
// The layout of perf's samples, in our events.
#pragma once

#include <asm/perf_regs.h>
#include <linux/perf_event.h>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace crosstalk::collectors {

/// The fields of a thread's clock and of its watchpoints. They are the same, so that a record can be parsed before its
/// event is known. Events that sample memory accesses have more.
inline constexpr std::uint64_t sample_fields = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                               PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
                                               PERF_SAMPLE_READ | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;

/// The layout of the samples in a ring.
struct SampleLayout {
  std::uint64_t fields = sample_fields;  // PERF_SAMPLE_*
  bool with_times = false;               // beside a count, how long the event was to count, and how long it did
};

// rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, rip, rflags; r8 to r15.
inline constexpr std::uint64_t sampled_registers =
    ((std::uint64_t{1} << (PERF_REG_X86_FLAGS + 1U)) - 1) | (std::uint64_t{0xff} << PERF_REG_X86_R8);
inline constexpr std::size_t sampled_register_count = std::popcount(sampled_registers);

}  // namespace crosstalk::collectors
