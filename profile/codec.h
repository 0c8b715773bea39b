// SPDX-License-Identifier: Apache-2.0
// How registers and stack bytes are packed into blobs of a profile (docs/profile-schema.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/registers.h"
#include "profile/records.h"

namespace crosstalk::profile {

/// Largest stack that a profile may hold, bytes: a record cannot carry more.
inline constexpr std::size_t max_stack_bytes = 0x10000;

/// The significant bytes of each register: 9 bytes of lengths (4 bits each, register 0 in the low half of
/// byte 0), then that many bytes of each, little-endian.
class PackedRegisters {
 public:
  explicit PackedRegisters(const Registers& registers);
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_, size_}; }

 private:
  std::uint8_t bytes_[9 + 8 * register_count] = {};
  std::size_t size_ = 9;
};

/// Nothing when `packed` is not what PackedRegisters makes.
[[nodiscard]] std::optional<Registers> unpack_registers(std::span<const std::uint8_t> packed);

/// Two bytes a word of the line, the lower first.
class PackedLineState {
 public:
  explicit PackedLineState(const LineState& state);
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::uint8_t bytes_[2 * LineState::words] = {};
};

/// Nothing when `packed` is not what PackedLineState makes.
[[nodiscard]] std::optional<LineState> unpack_line_state(std::span<const std::uint8_t> packed);

/// What a thread's registers have become since its previous sample: most of a loop's stay or move a little.
/// Registers but rip, which the sample has. First byte 1: counted from 0; 0: from the thread's previous registers.
/// Then 2 bytes, little-endian, with a bit for each register that has changed, and for each of those the
/// difference: zigzag (0, -1, 1, -2, ...), 7 bits a byte, lowest first, bit 7 set in all but the last (LEB128).
class RegisterSteps {
 public:
  /// `previous` null: counts from 0.
  RegisterSteps(const Registers& registers, const Registers* previous);
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_, size_}; }

 private:
  std::uint8_t bytes_[3 + 10 * (register_count - 1)] = {};
  std::size_t size_ = 0;
};

/// Takes `registers` from one moment to the next; rip stays. False, and no registers, when `packed` is not what
/// RegisterSteps makes, or counts from registers that are not there.
[[nodiscard]] bool follow_steps(std::span<const std::uint8_t> packed, std::optional<Registers>& registers);

/// The most addresses that a chain of calls has; what is further out is left off.
inline constexpr std::size_t max_call_chain = 512;
/// Each address less the one before (the first less 0): zigzag (0, -1, 1, -2, ...), 7 bits a byte, lowest first, bit 7
/// set in all but the last (LEB128).
[[nodiscard]] std::vector<std::uint8_t> pack_call_chain(std::span<const std::uint64_t> addresses);
/// False when `packed` is not what pack_call_chain() makes.
[[nodiscard]] bool unpack_call_chain(std::span<const std::uint8_t> packed, std::vector<std::uint64_t>& addresses);

/// Each count: 7 bits a byte, lowest first, bit 7 set in all but the last (LEB128).
[[nodiscard]] std::vector<std::uint8_t> pack_counts(std::span<const std::uint64_t> counts);
/// False when `packed` is not what pack_counts() makes, or holds more than `most`.
[[nodiscard]] bool unpack_counts(std::span<const std::uint8_t> packed, std::size_t most,
                                 std::vector<std::uint64_t>& counts);

/// Packs stack bytes as one zstd frame. Keeps its working memory; not thread-safe.
class StackPacker {
 public:
  StackPacker();
  StackPacker(StackPacker&&) noexcept;
  StackPacker& operator=(StackPacker&&) noexcept;
  ~StackPacker();
  /// The result lives until the next call; empty for no bytes, nothing when out of memory.
  [[nodiscard]] std::optional<std::span<const std::uint8_t>> pack(std::span<const std::uint8_t> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Unpacks into `bytes`; false when `packed` is no zstd frame or holds more than max_stack_bytes.
[[nodiscard]] bool unpack_stack(std::span<const std::uint8_t> packed, std::vector<std::uint8_t>& bytes);
/// The same of what may have up to `most` bytes.
[[nodiscard]] bool unpack_bytes(std::span<const std::uint8_t> packed, std::vector<std::uint8_t>& bytes,
                                std::size_t most);

}  // namespace crosstalk::profile
