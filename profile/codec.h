// SPDX-License-Identifier: Apache-2.0
// Packs registers and stack bytes into blobs of a profile (docs/profile-schema.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/registers.h"
#include "profile/records.h"

namespace crosstalk::profile {

/// The largest stack of a profile, bytes: a record cannot carry more.
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

/// Nothing if `packed` is not PackedRegisters's output.
[[nodiscard]] std::optional<Registers> unpack_registers(std::span<const std::uint8_t> packed);

/// Two bytes for each word of the line, the lower byte first.
class PackedLineState {
 public:
  explicit PackedLineState(const LineState& state);
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

 private:
  std::uint8_t bytes_[2 * LineState::words] = {};
};

/// Nothing if `packed` is not PackedLineState's output.
[[nodiscard]] std::optional<LineState> unpack_line_state(std::span<const std::uint8_t> packed);

/// The changes of a thread's registers since its previous sample: in loops most registers stay or change a little. All
/// registers but rip, which the sample has. First byte 1: differences from 0; 0: from the thread's previous registers.
/// Then 2 bytes, little-endian, with a bit for each register that has changed, and for each of those the difference:
/// zigzag (0, -1, 1, -2, ...), 7 bits a byte, lowest first, bit 7 set in all but the last (LEB128).
class RegisterSteps {
 public:
  /// Null `previous`: differences from 0.
  RegisterSteps(const Registers& registers, const Registers* previous);
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return {bytes_, size_}; }

 private:
  std::uint8_t bytes_[3 + 10 * (register_count - 1)] = {};
  std::size_t size_ = 0;
};

/// Applies a packed step to `registers`; rip stays. False, with `registers` reset, if `packed` is not RegisterSteps's
/// output, or is relative to registers that are missing.
[[nodiscard]] bool follow_steps(std::span<const std::uint8_t> packed, std::optional<Registers>& registers);

/// The most addresses of a call chain; outer calls beyond it are left off.
inline constexpr std::size_t max_call_chain = 512;
/// Each address less the one before (the first less 0): zigzag (0, -1, 1, -2, ...), 7 bits a byte, lowest first, bit 7
/// set in all but the last (LEB128).
[[nodiscard]] std::vector<std::uint8_t> pack_call_chain(std::span<const std::uint64_t> addresses);
/// False if `packed` is not pack_call_chain()'s output.
[[nodiscard]] bool unpack_call_chain(std::span<const std::uint8_t> packed, std::vector<std::uint64_t>& addresses);

/// Each count: 7 bits a byte, lowest first, bit 7 set in all but the last (LEB128).
[[nodiscard]] std::vector<std::uint8_t> pack_counts(std::span<const std::uint64_t> counts);
/// False if `packed` is not pack_counts()'s output, or holds more than `most`.
[[nodiscard]] bool unpack_counts(std::span<const std::uint8_t> packed, std::size_t most,
                                 std::vector<std::uint64_t>& counts);

/// Packs stack bytes as one zstd frame. Reuses its working memory; not thread-safe.
class StackPacker {
 public:
  StackPacker();
  StackPacker(StackPacker&&) noexcept;
  StackPacker& operator=(StackPacker&&) noexcept;
  ~StackPacker();
  /// Valid until the next call; empty for no bytes, nothing if memory runs out.
  [[nodiscard]] std::optional<std::span<const std::uint8_t>> pack(std::span<const std::uint8_t> bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Unpacks into `bytes`; false if `packed` is no zstd frame or holds more than max_stack_bytes.
[[nodiscard]] bool unpack_stack(std::span<const std::uint8_t> packed, std::vector<std::uint8_t>& bytes);
/// The same for up to `most` bytes.
[[nodiscard]] bool unpack_bytes(std::span<const std::uint8_t> packed, std::vector<std::uint8_t>& bytes,
                                std::size_t most);

}  // namespace crosstalk::profile
