// SPDX-License-Identifier: Apache-2.0
// What to do at an instruction pointer, once it is known: the access, and its address as a sum of registers. Most
// samples of a program fall on places that were sampled before, and a handler that finds a recipe decodes nothing:
// what it saves is not so much work as the code and the tables of that work, which are cold each time.
#pragma once

#include <cstdint>

#include "base/registers.h"
#include "collectors/in_target/access_cache.h"
#include "collectors/in_target/access_finder.h"

namespace crosstalk::in_target {

/// One difference of two values (a register each, or 0) that must not be `difference`, for an answer to be the same
/// again: what ruled out that execution had come another way.
struct Guard {
  std::uint8_t left = RegisterForm::constant;
  std::uint8_t right = RegisterForm::constant;
  std::uint64_t difference = 1;  ///< left - right; as it stands here it never is
  [[nodiscard]] bool holds(const Registers& registers) const {
    return register_or_zero(registers, left) - register_or_zero(registers, right) != difference;
  }
  bool operator==(const Guard&) const = default;
};

/// How an answer was come by: whether it would be the same with other values in the registers, and which code it rests
/// on. Flags do not count: answers are kept apart by them.
class Route {
 public:
  explicit Route(std::uint64_t ip) : ip_(ip), low_(ip), high_(ip) {}
  /// The answer depends on values that no guard can tell.
  void depends() { fixed_ = false; }
  void depends_on(const Guard& guard);
  /// It rests on the instruction at [begin, end).
  void passes(std::uint64_t begin, std::uint64_t end);

  [[nodiscard]] bool fixed() const { return fixed_; }
  [[nodiscard]] const Guard& guard() const { return guard_; }
  [[nodiscard]] std::uint64_t ip() const { return ip_; }
  [[nodiscard]] std::uint64_t low() const { return low_; }
  [[nodiscard]] std::uint64_t high() const { return high_; }

 private:
  std::uint64_t ip_;
  std::uint64_t low_;
  std::uint64_t high_;  // [low_, high_): code
  Guard guard_;
  bool fixed_ = true;
};

/// Looks for a recipe for these registers and, if there is one, writes its answer to `out`; `found` says whether there
/// is an access at all. Returns false when there is none: not learned, rewritten code, or a guard that does not hold.
/// Signal-safe; reads one entry of the cache and up to 192 bytes of code.
bool follow_recipe(const AccessCache& cache, const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                   const CodeReader& reader, FoundAccess& out, bool& found);

/// Keeps an answer as a recipe, if it can be one and none of its place was disproved. `access` is null where there is
/// none.
void learn_recipe(AccessCache& cache, const Registers& registers, std::uint64_t flags, const CodeReader& reader,
                  const Route& route, const FoundAccess* access);

/// A recipe's answer was not what the code says: the place (with these flags) gets no recipe any more.
void disprove_recipe(AccessCache& cache, const Registers& registers, std::uint64_t flags);

}  // namespace crosstalk::in_target
