// SPDX-License-Identifier: Apache-2.0
// Sampling by our kernel module for IBS (docs/kmod.md), inside a target or from outside: a context's set-up, its ring,
// and its records as the samples that perf would have made of the same registers. Pure, but for the ring, which is
// shared with the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/units.h"
#include "collectors/memory_samples/perf_records.h"
#include "kmod/crosstalk_ibs.h"

namespace crosstalk::collectors {

inline constexpr const char* ibs_module_device = "/dev/crosstalk_ibs";

/// Returns the range from which the module draws its intervals: around `period`, within its bounds.
[[nodiscard]] crosstalk_ibs_period drawn_around(const crosstalk_ibs_info& info, std::uint64_t period);
/// Returns the set-up of a context that samples micro-operations into a ring of `records`, and sends no signal.
[[nodiscard]] crosstalk_ibs_setup module_setup(const crosstalk_ibs_info& info, std::uint64_t period,
                                               std::size_t records);

/// The bytes of a sample's IBS registers as perf lays them out (PERF_SAMPLE_RAW): capabilities, control, RIP, data 1 to
/// 3, address.
inline constexpr std::size_t ibs_raw_bytes = sizeof(std::uint32_t) + 6 * sizeof(std::uint64_t);

/// Converts a record of the module to the sample that perf would have given. `raw` receives its registers; the result
/// refers to it. It has neither registers nor a stack, and its period is what it stands for.
[[nodiscard]] PerfSample perf_sample_of(const crosstalk_ibs_sample& record, std::span<std::byte, ibs_raw_bytes> raw);

/// A context's ring, mapped: a page of words, then records, as many as a power of two. It uses only those words
/// that change: inside a target the program may have written into all of them.
class ModuleRing {
 public:
  explicit ModuleRing(std::span<std::byte> mapped)
      : words_(*reinterpret_cast<crosstalk_ibs_ring*>(mapped.data())),
        records_(reinterpret_cast<const crosstalk_ibs_sample*>(mapped.data() + page_bytes)),
        capacity_((mapped.size() - page_bytes) / sizeof(crosstalk_ibs_sample)) {}

  [[nodiscard]] std::uint64_t capacity() const { return capacity_; }
  /// The module's next record, and the reader's position: they never wrap.
  [[nodiscard]] std::uint64_t head() const { return __atomic_load_n(&words_.head, __ATOMIC_ACQUIRE); }
  [[nodiscard]] std::uint64_t tail() const { return words_.tail; }
  /// How many records the ring had no room for.
  [[nodiscard]] std::uint64_t lost() const { return __atomic_load_n(&words_.lost, __ATOMIC_RELAXED); }
  [[nodiscard]] const crosstalk_ibs_sample& record(std::uint64_t number) const {
    return records_[number & (capacity_ - 1)];
  }
  /// Allows the module to overwrite the records before `tail`.
  void give_back(std::uint64_t tail) { __atomic_store_n(&words_.tail, static_cast<__u64>(tail), __ATOMIC_RELEASE); }

 private:
  crosstalk_ibs_ring& words_;
  const crosstalk_ibs_sample* records_;
  std::uint64_t capacity_;
};

}  // namespace crosstalk::collectors
