// SPDX-License-Identifier: Apache-2.0
#include "collectors/access/inline_cache.h"

#include <bit>

#include "base/units.h"
#include "collectors/access/emulator.h"

namespace crosstalk::in_target {

namespace {

constexpr std::size_t most_code = 192;  // bytes that an answer may rest on
constexpr std::uint64_t any_flags = 0;  // the place of an answer that does not depend on flags
constexpr std::uint64_t by_flags = 16;  // and of one that does: by_flags + those

/// A Turn in 12 bytes.
struct PackedTurn {
  std::int32_t left_plus = 0;
  std::int32_t right_plus = 0;
  std::uint8_t left = 0;
  std::uint8_t right = 0;
  std::uint8_t of_and_size = 0;          // Turn::Of, or'ed with the size << 4
  std::uint8_t condition_and_taken = 0;  // condition, or'ed with taken << 4
};

/// 56 bytes: a payload of the table.
struct CachedAccess {
  std::uint64_t offset = 0;
  std::int32_t guard_left_plus = 0;
  std::int32_t guard_right_plus = 0;
  std::int16_t instruction = 0;  // from the instruction pointer
  std::uint8_t before = 0;       // bytes of code that the answer rests on, before the instruction pointer
  std::uint8_t after = 0;        // and from it
  std::uint8_t width = 0;
  std::uint8_t kind_and_from = 0;   // AccessKind, or'ed with AddressFrom << 4
  std::uint8_t shift_fs_spill = 0;  // shift, fs << 2, spill << 3
  std::uint8_t disproved = 0;
  std::uint8_t base = RegisterForm::constant;
  std::uint8_t index = RegisterForm::constant;
  std::uint8_t guard_left = RegisterForm::constant;
  std::uint8_t guard_right = RegisterForm::constant;
  std::uint8_t look_ahead = 0;
  std::uint8_t reserved[3] = {};
  PackedTurn turn[Route::most_turns];
};
static_assert(sizeof(CachedAccess) == sizeof(InlineCache::Payload));

bool is_int32(std::uint64_t bits) {
  return static_cast<std::int64_t>(bits) == static_cast<std::int32_t>(static_cast<std::int64_t>(bits));
}
std::int32_t as_int32(std::uint64_t bits) { return static_cast<std::int32_t>(static_cast<std::int64_t>(bits)); }
std::uint64_t as_bits(std::int32_t value) { return static_cast<std::uint64_t>(std::int64_t{value}); }

std::uint64_t flags_of(std::uint64_t flags) {
  return ((flags & flag_carry) != 0 ? 1U : 0U) | ((flags & flag_zero) != 0 ? 2U : 0U) |
         ((flags & flag_sign) != 0 ? 4U : 0U) | ((flags & flag_overflow) != 0 ? 8U : 0U);
}

/// Returns the place in the table: from the instruction pointer, the flags if they count, and whether rbp is a frame
/// pointer. With a frame pointer, accesses relative to it are spills.
std::uint64_t cache_place(const Registers& registers, std::uint64_t flags) {
  constexpr std::uint64_t near_stack = std::uint64_t{1} << 20U;
  const bool frame = registers[Register::rbp] - registers[Register::rsp] < near_stack;
  return registers[Register::rip] + ((flags | (frame ? 32U : 0U)) << 56U);
}

/// The key: the place and the code that the answer rests on. False: the code cannot be read.
bool key_of(const CodeReader& reader, std::uint64_t place, std::uint64_t low, std::uint64_t bytes, std::uint64_t& key) {
  std::uint64_t code[most_code / sizeof(std::uint64_t)] = {};
  if (bytes > most_code || ((low ^ (low + bytes)) & ~(page_bytes - 1)) != 0 ||
      (bytes != 0 && !reader.read(reader.context, low, code, bytes))) {
    return false;
  }
  key = mix(bytes, place);
  for (std::size_t i = 0; i * sizeof(std::uint64_t) < bytes; ++i) {
    key = mix(key, code[i]);
  }
  return true;
}

/// Returns the key of a disproved answer, which does not depend on the code.
std::uint64_t disproved_key(std::uint64_t place) { return ~mix(0, place); }

bool plausible(const CachedAccess& cached) {
  return cached.disproved == 0 && std::size_t{cached.before} + cached.after <= most_code &&
         cached.base <= RegisterForm::constant && cached.index <= RegisterForm::constant;
}

Turn unpacked(const PackedTurn& packed) {
  Turn turn;
  turn.of = static_cast<Turn::Of>(packed.of_and_size & 15U);
  turn.size = packed.of_and_size >> 4U;
  turn.condition = packed.condition_and_taken & 15U;
  turn.taken = (packed.condition_and_taken & 16U) != 0;
  turn.left = {packed.left, as_bits(packed.left_plus)};
  turn.right = {packed.right, as_bits(packed.right_plus)};
  return turn;
}

bool pack(const Turn& turn, PackedTurn& packed) {
  packed.left_plus = as_int32(turn.left.plus);
  packed.right_plus = as_int32(turn.right.plus);
  packed.left = turn.left.from;
  packed.right = turn.right.from;
  packed.of_and_size = static_cast<std::uint8_t>(static_cast<unsigned>(turn.of) | unsigned{turn.size} << 4U);
  packed.condition_and_taken = static_cast<std::uint8_t>(turn.condition | (turn.taken ? 16U : 0U));
  return is_int32(turn.left.plus) && is_int32(turn.right.plus);
}

bool same_way(const CachedAccess& cached, const Registers& registers) {
  const Guard guard{{cached.guard_left, as_bits(cached.guard_left_plus)},
                    {cached.guard_right, as_bits(cached.guard_right_plus)}};
  if (!guard.holds(registers)) {
    return false;
  }
  for (const PackedTurn& turn : cached.turn) {
    if (turn.of_and_size != 0 && !unpacked(turn).holds(registers)) {
      return false;
    }
  }
  return true;
}

/// The cached at `place`, if there is one for this code and these registers.
bool find_cached(const InlineCache& table, std::uint64_t place, const Registers& registers, const CodeReader& reader,
                 CachedAccess& cached) {
  const InlineCache::Candidate candidate = table.at(place);
  cached = std::bit_cast<CachedAccess>(candidate.payload);
  std::uint64_t key = 0;
  return plausible(cached) &&
         key_of(reader, place, registers[Register::rip] - cached.before, std::uint64_t{cached.before} + cached.after,
                key) &&
         candidate.holds(key) && same_way(cached, registers);
}

void describe(const FoundAccess& access, std::uint64_t ip, CachedAccess& cached) {
  cached.offset = access.form.offset;
  cached.instruction = static_cast<std::int16_t>(access.instruction - ip);
  cached.width = access.width;
  cached.kind_and_from =
      static_cast<std::uint8_t>(static_cast<unsigned>(access.kind) | static_cast<unsigned>(access.from) << 4U);
  cached.shift_fs_spill =
      static_cast<std::uint8_t>(access.form.shift | (access.form.fs ? 4U : 0U) | (access.spill ? 8U : 0U));
  cached.base = access.form.base;
  cached.index = access.form.index;
}

bool describe(const Route& route, CachedAccess& cached) {
  const std::uint64_t before = route.ip() - route.low();
  const std::uint64_t after = route.high() - route.ip();
  const Guard& guard = route.guard();
  if (!route.fixed() || before + after == 0 || before + after > most_code || !is_int32(guard.left.plus) ||
      !is_int32(guard.right.plus)) {
    return false;
  }
  cached.before = static_cast<std::uint8_t>(before);
  cached.after = static_cast<std::uint8_t>(after);
  cached.guard_left = guard.left.from;
  cached.guard_right = guard.right.from;
  cached.guard_left_plus = as_int32(guard.left.plus);
  cached.guard_right_plus = as_int32(guard.right.plus);
  for (std::size_t i = 0; i < route.turns().size(); ++i) {
    const Turn& turn = route.turns()[i];
    if (turn.of != Turn::Of::nothing && !pack(turn, cached.turn[i])) {
      return false;
    }
  }
  return true;
}

/// Puts an answer into the table, unless one of its place was disproved. False: an answer cannot express `route`.
bool keep(InlineCache& table, const Registers& registers, std::uint64_t flags, const CodeReader& reader,
          const Route& route, CachedAccess& cached) {
  if ((flags & flag_direction) != 0 || !describe(route, cached)) {
    return false;
  }
  const std::uint64_t any = cache_place(registers, any_flags);
  const std::uint64_t place = route.by_flags() ? cache_place(registers, by_flags + flags_of(flags)) : any;
  std::uint64_t key = 0;
  if (!table.at(any).holds(disproved_key(any)) && key_of(reader, place, route.low(), route.high() - route.low(), key)) {
    table.put(place, key, std::bit_cast<InlineCache::Payload>(cached));
  }
  return true;
}

}  // namespace

CacheAnswer follow_cached(const InlineCache& table, const Registers& registers, std::uint64_t flags,
                          std::uint64_t fs_base, const CodeReader& reader, FoundAccess& out) {
  CachedAccess cached;
  if ((flags & flag_direction) != 0 ||
      (!find_cached(table, cache_place(registers, any_flags), registers, reader, cached) &&
       !find_cached(table, cache_place(registers, by_flags + flags_of(flags)), registers, reader, cached))) {
    return CacheAnswer::nothing;
  }
  if (cached.look_ahead != 0) {
    return CacheAnswer::look_ahead;
  }
  const auto kind = static_cast<AccessKind>(cached.kind_and_from & 15U);
  if (kind == AccessKind::none) {
    return CacheAnswer::no_access;
  }
  const unsigned shift = cached.shift_fs_spill & 3U;
  const bool fs = (cached.shift_fs_spill & 4U) != 0;
  out.instruction = registers[Register::rip] + static_cast<std::uint64_t>(std::int64_t{cached.instruction});
  out.address = register_or_zero(registers, cached.base) + (register_or_zero(registers, cached.index) << shift) +
                cached.offset + (fs ? fs_base : 0);
  out.width = cached.width;
  out.kind = kind;
  out.from = static_cast<profile::AddressFrom>(cached.kind_and_from >> 4U);
  out.cached = true;
  out.spill = (cached.shift_fs_spill & 8U) != 0;
  return CacheAnswer::access;
}

bool learn_cached(InlineCache& table, const Registers& registers, std::uint64_t flags, const CodeReader& reader,
                  const Route& route, const FoundAccess* access) {
  CachedAccess cached;
  if (access != nullptr && !access->form.known()) {
    return false;
  }
  if (access != nullptr) {
    describe(*access, route.ip(), cached);
  }
  return keep(table, registers, flags, reader, route, cached);
}

void learn_to_look_ahead(InlineCache& table, const Registers& registers, std::uint64_t flags, const CodeReader& reader,
                         const Route& route) {
  CachedAccess cached;
  cached.look_ahead = 1;
  keep(table, registers, flags, reader, route, cached);
}

void disprove_cached(InlineCache& table, const Registers& registers, std::uint64_t flags) {
  CachedAccess cached;
  cached.disproved = 1;
  const std::uint64_t any = cache_place(registers, any_flags);
  table.put(any, disproved_key(any), std::bit_cast<InlineCache::Payload>(cached));
  table.put(cache_place(registers, by_flags + flags_of(flags)), 0, {});
}

}  // namespace crosstalk::in_target
