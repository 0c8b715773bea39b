// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/finder.h"

#include "collectors/access/code.h"
#include "collectors/access/inline_cache.h"
#include "collectors/access/spill.h"

namespace crosstalk::in_target {

namespace {

// A cached answer assumes that execution has come to the place by the same path as before. It may have come by a jump
// from afar, which the code around does not show. So some answers are checked, and a place with a wrong one is decided
// anew from then on. Chance chooses the checked answers: of threads whose clocks tick in turn it would otherwise always
// be the same.
bool audited(std::uint32_t number) {
  constexpr unsigned one_in_16 = 60;
  return mix(0, number) >> one_in_16 == 0;
}

}  // namespace

/// The inline cache's answer. If `ahead`, the code ahead was interpreted: the answer only says that no earlier access
/// can be determined, and the code ahead may depend on memory that changes.
struct AccessFinder::Answer {
  CacheAnswer says = CacheAnswer::nothing;
  bool ahead = false;
  FoundAccess access;

  [[nodiscard]] bool differs(bool found, const FoundAccess& other) const {
    return found != (says == CacheAnswer::access) ||
           (found && (access.instruction != other.instruction || access.address != other.address ||
                      access.width != other.width || access.kind != other.kind));
  }
};

// `back`: the path by which no access before the instruction pointer was found to be the answer, if none is known.
bool AccessFinder::decide(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                          const CodeReader& reader, FoundAccess& out, Route& route, Route& back) {
  CodeWindow window(reader, cache_);
  FoundAccess last;
  const bool has_last = retired(registers, flags, fs_base, window, reader, last, route);
  if (has_last && !last.spill) {
    out = last;
    return true;
  }
  if (!has_last) {
    constexpr std::uint64_t code_before = 8;  // the finder of predecessors checks cached answers by these, too
    back = route;
    back.passes(registers[Register::rip] - code_before, registers[Register::rip]);
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
  FoundAccess known;
  CacheAnswer says = follow_cached(inline_cache_, registers, flags, fs_base, reader, known);
  if (says == CacheAnswer::access && !known.spill &&
      is_at_stack_top(known.kind, known.address, registers[Register::rsp])) {
    says = CacheAnswer::nothing;  // it was kept when its register pointed elsewhere
  }
  const bool ahead = says == CacheAnswer::look_ahead;
  if (ahead) {
    says = find_next(registers, flags, fs_base, reader, known) ? CacheAnswer::access : CacheAnswer::no_access;
  }
  if (says != CacheAnswer::nothing && !audited(followed_.fetch_add(1, std::memory_order_relaxed))) {
    if (says == CacheAnswer::access) {
      out = known;
    }
    return says == CacheAnswer::access;
  }
  return find_anew(registers, flags, fs_base, reader, {says, ahead, known}, out);
}

// Decides without the inline cache; an answer that the cache has given is compared with the result.
bool AccessFinder::find_anew(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                             const CodeReader& reader, const Answer& answer, FoundAccess& out) {
  Route route(registers[Register::rip]);
  Route back(registers[Register::rip]);
  const bool found = decide(registers, flags, fs_base, reader, out, route, back);
  if (answer.says == CacheAnswer::nothing) {
    if (!learn_cached(inline_cache_, registers, flags, reader, route, found ? &out : nullptr)) {
      learn_to_look_ahead(inline_cache_, registers, flags, reader, back);
    }
  } else if (answer.ahead ? found && out.from == profile::AddressFrom::retired : answer.differs(found, out)) {
    disprove_cached(inline_cache_, registers, flags);
  }
  return found;
}

bool AccessFinder::find_retired(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                                const CodeReader& reader, FoundAccess& out) {
  CodeWindow window(reader, cache_);
  Route route(registers[Register::rip]);
  return retired(registers, flags, fs_base, window, reader, out, route);
}

bool AccessFinder::find_next(const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                             const CodeReader& reader, FoundAccess& out) {
  CodeWindow window(reader, cache_);
  Route route(registers[Register::rip]);
  return next(registers, flags, fs_base, window, reader, out, route);
}

}  // namespace crosstalk::in_target
