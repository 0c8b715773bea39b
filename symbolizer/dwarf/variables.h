// SPDX-License-Identifier: Apache-2.0
// The variables with static storage in the DWARF, by address and by TLS offset: globals, static class members, and
// statics of functions.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "symbolizer/dwarf/debug_info.h"

namespace crosstalk::symbolizer {

class Variables {
 public:
  explicit Variables(DebugInfo& info) : info_(info) {}
  /// The variable that begins at `value`, a module address or (tls) an offset in the TLS block. The first call reads
  /// the names of all units. The first call that does not find its variable outside functions reads the functions too.
  [[nodiscard]] std::optional<Dwarf_Die> find(std::uint64_t value, bool tls);
  [[nodiscard]] static SourceLine declared(Dwarf_Die& variable);

 private:
  enum class Depth { none, outside_functions, everything };
  void read(Depth depth);
  void collect(Dwarf_Die& parent, WalkBudget& budget, int nesting);
  void add(Dwarf_Die& variable);

  DebugInfo& info_;
  Depth depth_ = Depth::none;
  std::unordered_map<std::uint64_t, Dwarf_Die> globals_, tls_;
};

}  // namespace crosstalk::symbolizer
