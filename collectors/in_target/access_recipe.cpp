// SPDX-License-Identifier: Apache-2.0
#include "collectors/in_target/access_recipe.h"

#include <bit>
#include <cstring>

#include "collectors/in_target/access_machine.h"

namespace crosstalk::in_target {

namespace {

constexpr std::uint64_t kind_recipe = 64;  // and above: the state that answers are kept apart by
constexpr std::uint64_t page_bytes = 4096;
constexpr std::size_t most_code = 192;  // bytes that an answer may rest on

/// 24 bytes: a payload of the cache.
struct Recipe {
  std::uint64_t offset = 0;
  std::int32_t guard_difference = 1;
  std::int16_t instruction = 0;  // from the instruction pointer
  std::uint8_t before = 0;  // bytes of code that the answer rests on, before the instruction pointer
  std::uint8_t after = 0;   // and from it
  std::uint8_t width = 0;
  std::uint8_t kind_and_from = 0;     // AccessKind, or'ed with AddressFrom << 4
  std::uint8_t shift_fs_spill = 0;    // shift, fs << 2, spill << 3
  std::uint8_t base = RegisterForm::constant;
  std::uint8_t index = RegisterForm::constant;
  std::uint8_t guard_left = RegisterForm::constant;
  std::uint8_t guard_right = RegisterForm::constant;
  std::uint8_t disproved = 0;
};
static_assert(sizeof(Recipe) == sizeof(AccessCache::Payload));

/// What of the state, other than registers in general, decides between paths: the flags, and whether rbp is a frame
/// pointer (is_spill).
std::uint64_t class_of(const Registers& registers, std::uint64_t flags) {
  constexpr std::uint64_t near_stack = std::uint64_t{1} << 20U;
  const std::uint64_t distance = registers[Register::rbp] - registers[Register::rsp];
  std::uint64_t bits = distance < near_stack ? 32U : 0U;
  bits |= (flags & flag_carry) != 0 ? 1U : 0U;
  bits |= (flags & flag_parity) != 0 ? 2U : 0U;
  bits |= (flags & flag_zero) != 0 ? 4U : 0U;
  bits |= (flags & flag_sign) != 0 ? 8U : 0U;
  bits |= (flags & flag_overflow) != 0 ? 16U : 0U;
  return kind_recipe + bits;
}

/// The cache's key: the place and the code that the answer rests on. False: the code can not be read.
bool key_of(const CodeReader& reader, std::uint64_t ip, std::uint64_t low, std::uint64_t bytes, std::uint64_t& key) {
  std::uint64_t code[most_code / sizeof(std::uint64_t)] = {};
  if (bytes > most_code || ((low ^ (low + bytes)) & ~(page_bytes - 1)) != 0 ||
      (bytes != 0 && !reader.read(reader.context, low, code, bytes))) {
    return false;
  }
  key = AccessCache::mix(kind_recipe, ip);
  for (std::size_t i = 0; i * sizeof(std::uint64_t) < bytes; ++i) {
    key = AccessCache::mix(key, code[i]);
  }
  return true;
}

bool plausible(const Recipe& recipe) {
  return recipe.disproved == 0 && std::size_t{recipe.before} + recipe.after <= most_code && recipe.base <= RegisterForm::constant && recipe.index <= RegisterForm::constant &&
         recipe.guard_left <= RegisterForm::constant && recipe.guard_right <= RegisterForm::constant;
}

/// Of a disproved recipe, whatever the code.
std::uint64_t disproved_key(std::uint64_t ip) { return ~AccessCache::mix(kind_recipe, ip); }

bool was_disproved(const AccessCache& cache, std::uint64_t ip, std::uint64_t state) {
  return cache.at(ip, state).holds(disproved_key(ip));
}

}  // namespace

void Route::depends_on(const Guard& guard) {
  if (guard_ == Guard{}) {
    guard_ = guard;
  } else if (guard_ != guard) {
    fixed_ = false;
  }
}

void Route::passes(std::uint64_t begin, std::uint64_t end) {
  low_ = begin < low_ ? begin : low_;
  high_ = end > high_ ? end : high_;
}

bool follow_recipe(const AccessCache& cache, const Registers& registers, std::uint64_t flags, std::uint64_t fs_base,
                   const CodeReader& reader, FoundAccess& out, bool& found) {
  const std::uint64_t ip = registers[Register::rip];
  const AccessCache::Candidate candidate = cache.at(ip, class_of(registers, flags));
  const auto recipe = std::bit_cast<Recipe>(candidate.payload);
  std::uint64_t key = 0;
  if (!plausible(recipe) || (flags & flag_direction) != 0) {
    return false;
  }
  if (!key_of(reader, ip, ip - recipe.before, std::uint64_t{recipe.before} + recipe.after, key) || !candidate.holds(key)) {
    return false;
  }
  const Guard guard{recipe.guard_left, recipe.guard_right,
                    static_cast<std::uint64_t>(std::int64_t{recipe.guard_difference})};
  if (!guard.holds(registers)) {
    return false;
  }
  const auto kind = static_cast<AccessKind>(recipe.kind_and_from & 15U);
  found = kind != AccessKind::none;
  if (!found) {
    return true;
  }
  const unsigned shift = recipe.shift_fs_spill & 3U;
  const bool fs = (recipe.shift_fs_spill & 4U) != 0;
  out.instruction = ip + static_cast<std::uint64_t>(std::int64_t{recipe.instruction});
  out.address = register_or_zero(registers, recipe.base) + (register_or_zero(registers, recipe.index) << shift) +
                recipe.offset + (fs ? fs_base : 0);
  out.width = recipe.width;
  out.kind = kind;
  out.from = static_cast<profile::AddressFrom>(recipe.kind_and_from >> 4U);
  out.recipe = true;
  out.spill = (recipe.shift_fs_spill & 8U) != 0;
  out.form = {recipe.base, recipe.index, static_cast<std::uint8_t>(shift), fs, recipe.offset};
  return true;
}

void learn_recipe(AccessCache& cache, const Registers& registers, std::uint64_t flags, const CodeReader& reader,
                  const Route& route, const FoundAccess* access) {
  const std::uint64_t ip = route.ip();
  const std::uint64_t before = ip - route.low();
  const std::uint64_t after = route.high() - ip;
  const auto difference = static_cast<std::int64_t>(route.guard().difference);
  if (!route.fixed() || (flags & flag_direction) != 0 || before + after > most_code ||
      difference != static_cast<std::int32_t>(difference) || (access != nullptr && !access->form.known())) {
    return;
  }
  Recipe recipe;
  recipe.before = static_cast<std::uint8_t>(before);
  recipe.after = static_cast<std::uint8_t>(after);
  recipe.guard_left = route.guard().left;
  recipe.guard_right = route.guard().right;
  recipe.guard_difference = static_cast<std::int32_t>(difference);
  if (access != nullptr) {
    recipe.offset = access->form.offset;
    recipe.instruction = static_cast<std::int16_t>(access->instruction - ip);
    recipe.width = access->width;
    recipe.kind_and_from =
        static_cast<std::uint8_t>(static_cast<unsigned>(access->kind) | static_cast<unsigned>(access->from) << 4U);
    recipe.shift_fs_spill = static_cast<std::uint8_t>(access->form.shift | (access->form.fs ? 4U : 0U) |
                                                      (access->spill ? 8U : 0U));
    recipe.base = access->form.base;
    recipe.index = access->form.index;
  }
  std::uint64_t key = 0;
  if (!was_disproved(cache, ip, class_of(registers, flags)) && key_of(reader, ip, route.low(), before + after, key)) {
    cache.put(ip, class_of(registers, flags), key, std::bit_cast<AccessCache::Payload>(recipe));
  }
}

void disprove_recipe(AccessCache& cache, const Registers& registers, std::uint64_t flags) {
  const std::uint64_t ip = registers[Register::rip];
  Recipe recipe;
  recipe.disproved = 1;
  cache.put(ip, class_of(registers, flags), disproved_key(ip), std::bit_cast<AccessCache::Payload>(recipe));
}

}  // namespace crosstalk::in_target
