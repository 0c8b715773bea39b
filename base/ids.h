// SPDX-License-Identifier: Apache-2.0
// Strong types for indices, so that comparing a thread index with a pid does not compile.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace crosstalk {

template <class Tag>
struct Id {
  std::uint32_t value = 0;
  constexpr auto operator<=>(const Id&) const = default;
};

using ProcessId = Id<struct ProcessTag>;  ///< row of a process in a profile (not a pid)
using ThreadId = Id<struct ThreadTag>;    ///< index of a thread in a profile (not a tid)
using ModuleId = Id<struct ModuleTag>;    ///< index of a file of code within a Symbolizer
using StackId = Id<struct StackTag>;      ///< a captured stack in a profile; 0 = none
using WatchId = Id<struct WatchTag>;      ///< one opening of the watchpoint unit; 0 = none

}  // namespace crosstalk

template <class Tag>
struct std::hash<crosstalk::Id<Tag>> {
  std::size_t operator()(crosstalk::Id<Tag> id) const noexcept { return std::hash<std::uint32_t>{}(id.value); }
};
