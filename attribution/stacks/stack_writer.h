// SPDX-License-Identifier: Apache-2.0
// Writes stacks as numbers of places.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "attribution/stacks/lenders.h"
#include "attribution/stacks/stack_places.h"

namespace crosstalk::attribution {

[[nodiscard]] inline LeafPlace leaf_of(std::uint32_t thread, const std::optional<ModulePlace>& place,
                                       std::uint64_t address) {
  return place ? LeafPlace{thread, place->file + 1, place->address} : LeafPlace{thread, 0, address};
}

class StackWriter {
 public:
  /// Both must outlive this.
  StackWriter(const ProgramView& view, const StackTable& stacks) : view_(view), stacks_(stacks), places_(view) {}

  [[nodiscard]] std::uint32_t place_of(const LeafPlace& leaf);
  /// Appends the places of the callers.
  void append(const CallerStack& callers, std::vector<std::uint32_t>& to);
  [[nodiscard]] StackPlaces& places() { return places_; }

 private:
  const ProgramView& view_;
  const StackTable& stacks_;
  StackPlaces places_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> callers_;  // by process and number
};

}  // namespace crosstalk::attribution
