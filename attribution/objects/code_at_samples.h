// SPDX-License-Identifier: Apache-2.0
// Answers questions about the machine code at samples, for probes of lines (timeline/probe_timeline.h). Caches answers
// that depend on the instruction alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "attribution/program/by_place.h"
#include "attribution/program/program_view.h"
#include "attribution/timeline/probe_timeline.h"
#include "symbolizer/cfg/stores_ahead.h"
#include "symbolizer/loops/waiting.h"

namespace crosstalk::attribution {

/// Not thread-safe (CodeMap).
class CodeAtSamples : public SampledCode {
 public:
  /// `view` must outlive this.
  explicit CodeAtSamples(const ProgramView& view) : view_(view) {}
  [[nodiscard]] bool stores_back(ThreadId thread, std::uint64_t time_ns, std::uint64_t ip) override;
  [[nodiscard]] std::optional<LoadedValue> last_loaded(const profile::SampleRow& sample) override;
  [[nodiscard]] std::span<const PossibleStore> stores_ahead(const profile::SampleRow& sample) override;

 private:
  using Mapped = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>;  // file, its address, and the bias
  [[nodiscard]] std::optional<symbolizer::LoadedRegister> find_loaded(ModulePlace place) const;
  [[nodiscard]] std::vector<symbolizer::StoreAhead> find_stores(ModulePlace place, std::uint64_t bias) const;

  const ProgramView& view_;
  ByPlace<bool> stored_back_;
  ByPlace<std::optional<symbolizer::LoadedRegister>> loaded_;
  std::map<Mapped, std::vector<symbolizer::StoreAhead>> ahead_;
  std::vector<PossibleStore> answer_;
};

}  // namespace crosstalk::attribution
