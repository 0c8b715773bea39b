// SPDX-License-Identifier: Apache-2.0
// The output of every sample source: a clock, a performance counter, inside the target or beside it.
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "profile/records.h"

namespace crosstalk::collectors {

/// One moment of one thread, and its weight. Fields that a source cannot tell keep these values; later steps may fill
/// them (a clock only knows what it interrupted, and the access is found from the code).
struct Observation {
  // Thread and time
  std::uint32_t thread = 0;         ///< its number, as its ring's (ThreadState::number)
  std::uint64_t time_ns = 0;        ///< CLOCK_MONOTONIC
  std::uint64_t thread_cpu_ns = 0;  ///< CPU time of the thread so far
  std::uint64_t cpu_ns = 0;         ///< of it, since the thread's previous observation
  std::uint16_t cpu = 0;            ///< the processor
  bool in_kernel = false;

  // Instruction
  std::uint64_t ip = 0;         ///< the interrupted or the sampled instruction
  std::uint64_t access_ip = 0;  ///< the instruction that made the access; 0: not known
  bool skid_known = false;      ///< `ip` is the sampled instruction itself, not one some way behind it
  Registers registers;
  std::uint64_t flags = 0;             ///< rflags
  const void* vector_state = nullptr;  ///< the vector registers as the kernel has saved them; null: not known

  // Access
  std::uint64_t address = 0;  ///< first byte; 0: not known
  std::uint8_t width = 0;     ///< bytes; 0: not known
  AccessKind kind = AccessKind::none;
  profile::AddressFrom from = profile::AddressFrom::none;
  bool on_own_stack = false;
  std::uint32_t latency_cycles = 0;  ///< 0: not known
  std::uint64_t data_source = 0;     ///< perf_event's data_src; 0: not known

  // Weight
  std::uint8_t event = 0;  ///< of the session's memory events, by number; 0: none
  profile::SourceKind source = profile::SourceKind::clock;
  profile::WeightUnit weight_unit = profile::WeightUnit::ns;
  std::uint64_t weight = 0;  ///< in weight_unit
};

/// Returns the record of an observation. The caller fills in what later steps find: a watch, a stack, flags.
[[nodiscard]] inline profile::Sample record_of(const Observation& seen) {
  profile::Sample record;
  record.header.type = profile::RecordType::sample;
  record.time_ns = seen.time_ns;
  record.ip = seen.ip;
  record.access_ip = seen.access_ip;
  record.address = seen.address;
  record.cpu_ns = seen.cpu_ns;
  record.cpu = seen.cpu;
  record.width = seen.width;
  record.access = seen.kind;
  record.from = seen.from;
  record.flags = static_cast<std::uint8_t>((seen.in_kernel ? unsigned{profile::sample_in_kernel} : 0U) |
                                           (seen.on_own_stack ? unsigned{profile::sample_on_stack} : 0U));
  record.event = seen.event;
  record.weight = seen.weight;
  record.weight_unit = seen.weight_unit;
  record.source = seen.source;
  record.latency_cycles = seen.latency_cycles;
  record.data_source = seen.data_source;
  record.registers = seen.registers;
  return record;
}

}  // namespace crosstalk::collectors
