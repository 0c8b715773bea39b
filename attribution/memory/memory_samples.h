// SPDX-License-Identifier: Apache-2.0
// Keeps samples of memory accesses by a hardware source.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attribution/model/data_source.h"
#include "profile/model.h"

namespace crosstalk::attribution {

struct MemorySample {
  std::uint64_t time_ns = 0;
  std::uint64_t address = 0;  // 0: not known
  std::uint64_t code = 0;     // a byte of the instruction; in the kernel, of the call that led there, 0 if not known
  std::uint64_t weight = 0;
  std::uint64_t data_source = 0;
  ThreadId thread;
  profile::EventId event;
  profile::CallChainId call_chain;
  std::uint32_t latency_cycles = 0;  // 0: not known
  std::uint16_t cpu = profile::unknown_cpu;
  std::uint8_t width = 0;  // 0: not known
  AccessKind access = AccessKind::none;
  profile::WeightUnit unit = profile::WeightUnit::occurrences;
  bool in_kernel = false;

  /// True if the weight is a number of accesses: for events that count them, and events that draw from all operations
  /// alike.
  [[nodiscard]] bool counts_accesses() const {
    return unit == profile::WeightUnit::accesses || unit == profile::WeightUnit::micro_ops;
  }
  [[nodiscard]] bool in_kernel_memory() const { return address >> 63U != 0; }
};

class MemorySamples {
 public:
  void add(const profile::SampleRow& row);
  [[nodiscard]] std::span<const MemorySample> all() const { return samples_; }
  /// The number of samples of hardware sources without a known memory access.
  [[nodiscard]] std::uint64_t others() const { return others_; }

 private:
  std::vector<MemorySample> samples_;
  std::uint64_t others_ = 0;
};

}  // namespace crosstalk::attribution
