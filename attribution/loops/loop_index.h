// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "attribution/model/model.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution {

/// Finds the row of the loop that contains an instruction. Rows and view must outlive this.
class LoopIndex {
 public:
  LoopIndex(const ProgramView& view, std::span<const LoopRow> loops);
  /// Index of the innermost loop with a row: loops without samples have none.
  [[nodiscard]] std::optional<std::size_t> innermost(ModulePlace place) const;

 private:
  const ProgramView& view_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::size_t> by_place_;  // file and header
};

}  // namespace crosstalk::attribution
