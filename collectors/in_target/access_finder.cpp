// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/access_finder.h"

#include "collectors/in_target/access_code.h"
#include "collectors/in_target/access_recipe.h"

namespace crosstalk::in_target {

namespace {

// A recipe takes it that execution came the same way. Where it may come by a jump from afar, which is not seen, only
// the values tell; so some answers are checked, and a place where one was wrong is decided anew from then on.
// Which, is drawn: threads whose clocks tick in turn would else have always the same one of them checked.
bool audited(std::uint32_t number) {
  constexpr unsigned one_in_16 = 60;
  return mix(0, number) >> one_in_16 == 0;
}

bool same_answer(const FoundAccess& a, const FoundAccess& b) {
  return a.instruction == b.instruction && a.address == b.address && a.width == b.width && a.kind == b.kind;
}

}  // namespace

bool AccessFinder::decide(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                          const CodeReader& reader, FoundAccess& out, Route& route) {
  CodeWindow window(reader, cache_);
  FoundAccess last;
  const bool has_last = retired(registers, flags, fs_base, window, last, route);
  if (has_last && !last.spill) {
    out = last;
    return true;
  }
  if (next(registers, flags, fs_base, window, reader, out, route)) {
    return true;
  }
  if (has_last) {
    out = last;
  }
  return has_last;
}

bool AccessFinder::find(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                        const CodeReader& reader, FoundAccess& out) {
  FoundAccess by_recipe;
  bool has_access = false;
  const bool followed = follow_recipe(recipes_, registers, flags, fs_base, reader, by_recipe, has_access);
  if (followed && !audited(followed_.fetch_add(1, std::memory_order_relaxed))) {
    if (has_access) {
      out = by_recipe;
    }
    return has_access;
  }
  Route route(registers[Register::rip]);
  const bool found = decide(registers, flags, fs_base, reader, out, route);
  if (!followed) {
    learn_recipe(recipes_, registers, flags, reader, route, found ? &out : nullptr);
  } else if (found != has_access || (found && !same_answer(out, by_recipe))) {
    disprove_recipe(recipes_, registers, flags);
  }
  return found;
}

bool AccessFinder::find_retired(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                                const CodeReader& reader, FoundAccess& out) {
  CodeWindow window(reader, cache_);
  Route route(registers[Register::rip]);
  return retired(registers, flags, fs_base, window, out, route);
}

bool AccessFinder::find_next(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                             const CodeReader& reader, FoundAccess& out) {
  CodeWindow window(reader, cache_);
  Route route(registers[Register::rip]);
  return next(registers, flags, fs_base, window, reader, out, route);
}

}  // namespace crosstalk::in_target
