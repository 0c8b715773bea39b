// SPDX-License-Identifier: Apache-2.0
// The access of a sample, found by the same code as inside a target (collectors/access/finder.h).
//
// When a sample is read here its thread has long gone on. So this reads only memory that cannot have changed since: the
// code, read-only mappings, and the piece of stack that came with the sample. Only a guess uses memory as it is now.
#pragma once

#include <optional>
#include <vector>

#include "collectors/access/finder.h"
#include "collectors/observer/perf_types.h"
#include "collectors/observer/process_maps.h"
#include "collectors/observer/target_process.h"

namespace crosstalk::observer {

class SampleView {
 public:
  /// All must outlive it.
  SampleView(const PerfSample& sample, const TargetMemory& memory, const std::vector<Mapping>& maps)
      : sample_(sample), memory_(memory), maps_(maps) {}

  /// The access that took the sample's time, or will come next.
  [[nodiscard]] std::optional<in_target::FoundAccess> find(in_target::AccessFinder& finder);
  /// The access that a watchpoint has reported.
  [[nodiscard]] std::optional<in_target::FoundAccess> find_retired(in_target::AccessFinder& finder);
  /// True if an access was found at an address that is not known to be mapped.
  [[nodiscard]] bool missed_mapping() const { return missed_mapping_; }

  /// How it sees the thread's memory; refers to this view.
  in_target::CodeReader reader() { return {this, read_code, read_data, read_now}; }

 private:
  [[nodiscard]] bool plausible(const in_target::FoundAccess& access);
  static bool read_code(void* view, std::uint64_t address, void* out, std::size_t bytes);
  static bool read_data(void* view, std::uint64_t address, void* out, std::size_t bytes);
  static bool read_now(void* view, std::uint64_t address, void* out, std::size_t bytes);

  const PerfSample& sample_;
  const TargetMemory& memory_;
  const std::vector<Mapping>& maps_;
  bool missed_mapping_ = false;
};

}  // namespace crosstalk::observer
