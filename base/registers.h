// SPDX-License-Identifier: Apache-2.0
// The x86-64 integer registers of an interrupted thread, in DWARF numbering (System V psABI, fig. 3.36),
// as they are recorded, unwound and used to compute effective addresses.
#pragma once

#include <array>
#include <cstdint>

namespace crosstalk {

enum class Register : std::uint8_t {
  rax,
  rdx,
  rcx,
  rbx,
  rsi,
  rdi,
  rbp,
  rsp,
  r8,
  r9,
  r10,
  r11,
  r12,
  r13,
  r14,
  r15,
  rip,
};
inline constexpr std::size_t register_count = 17;

struct Registers {
  std::array<std::uint64_t, register_count> value{};
  [[nodiscard]] constexpr std::uint64_t operator[](Register r) const { return value[static_cast<std::size_t>(r)]; }
  constexpr std::uint64_t& operator[](Register r) { return value[static_cast<std::size_t>(r)]; }
};
static_assert(sizeof(Registers) == 136);

/// The memory access of an instruction. An atomic read-modify-write and any `op mem, reg` is `load_store`.
enum class AccessKind : std::uint8_t { none = 0, load = 1, store = 2, load_store = 3 };

[[nodiscard]] constexpr bool loads(AccessKind k) { return (static_cast<unsigned>(k) & 1U) != 0; }
[[nodiscard]] constexpr bool stores(AccessKind k) { return (static_cast<unsigned>(k) & 2U) != 0; }

}  // namespace crosstalk
