// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/access_finder.h"

#include "collectors/in_target/access_code.h"
#include "collectors/in_target/access_recipe.h"

namespace crosstalk::in_target {

namespace {

// A recipe takes it that execution came the same way. Where it may come by a jump from afar, which is not seen, only
// the values tell; so some answers are checked, and a place where one was wrong is decided anew each time.
constexpr std::uint32_t audited_one_in = 16;

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
  if (followed && followed_.fetch_add(1, std::memory_order_relaxed) % audited_one_in != audited_one_in - 1) {
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
