// SPDX-License-Identifier: Apache-2.0
// The code that makes sampled accesses.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "attribution/memory/memory_samples.h"
#include "attribution/model/model.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// An instruction that accesses memory; in the kernel, the program's call that led there.
struct MemorySite {
  static constexpr std::uint32_t no_loop = UINT32_MAX;
  std::string function, file, module;
  std::uint32_t line = 0;
  std::uint64_t instruction = 0;  // address in the module's file, or at run time where there is none
  std::uint32_t loop = no_loop;   // the innermost, as index into the list of loops
};

/// Resolves each address of code once.
class MemorySites {
 public:
  /// `loops`: all loops with samples. Both must outlive this.
  MemorySites(const ProgramView& view, std::span<const LoopRow> loops);
  [[nodiscard]] std::uint32_t of(const MemorySample& sample);
  [[nodiscard]] const MemorySite& operator[](std::uint32_t site) const { return sites_[site]; }

 private:
  [[nodiscard]] MemorySite look_up(const MemorySample& sample, Moment moment,
                                   const std::optional<ModulePlace>& place) const;

  const ProgramView& view_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> loop_of_;              // file and header
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::uint32_t> ids_;  // file, process, address
  std::vector<MemorySite> sites_;
};

/// A sample with what is known of it.
struct PlacedSample {
  const MemorySample* sample = nullptr;
  DataSource source;
  std::uint32_t site = 0;
};

}  // namespace crosstalk::attribution
