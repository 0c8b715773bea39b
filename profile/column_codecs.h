// SPDX-License-Identifier: Apache-2.0
// How fields become blobs of a profile, and what is made of these. Internal to the writer and the reader.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "profile/codec.h"
#include "profile/counter_reading.h"
#include "profile/model.h"

namespace crosstalk::profile {

// pack() returns bytes or what has bytes(). unpack() is false if the bytes are not pack()'s.

struct RegistersCodec {
  static PackedRegisters pack(const Registers& registers) { return PackedRegisters(registers); }
  static bool unpack(std::span<const std::uint8_t> packed, Registers& registers) {
    const std::optional<Registers> unpacked = unpack_registers(packed);
    registers = unpacked.value_or(Registers{});
    return unpacked.has_value();
  }
};

struct FrameCodec {
  static PackedRegisters pack(const TrapFrame& frame) {
    Registers words;
    std::copy(frame.begin(), frame.end(), words.value.begin());
    return PackedRegisters(words);
  }
  static bool unpack(std::span<const std::uint8_t> packed, TrapFrame& frame) {
    Registers words;
    const bool sound = RegistersCodec::unpack(packed, words);
    std::copy_n(words.value.begin(), trap_frame_words, frame.begin());
    return sound;
  }
};

struct LineStateCodec {
  static PackedLineState pack(const LineState& state) { return PackedLineState(state); }
  static bool unpack(std::span<const std::uint8_t> packed, LineState& state) {
    const std::optional<LineState> unpacked = unpack_line_state(packed);
    state = unpacked.value_or(LineState{});
    return unpacked.has_value();
  }
};

struct CallChainCodec {
  static std::vector<std::uint8_t> pack(std::span<const std::uint64_t> addresses) { return pack_call_chain(addresses); }
  static bool unpack(std::span<const std::uint8_t> packed, std::vector<std::uint64_t>& addresses) {
    return unpack_call_chain(packed, addresses);
  }
};

struct CountsCodec {
  static std::vector<std::uint8_t> pack(std::span<const std::uint64_t> counts) { return pack_counts(counts); }
  static bool unpack(std::span<const std::uint8_t> packed, std::vector<std::uint64_t>& counts) {
    return unpack_counts(packed, most_group_counters, counts);
  }
};

}  // namespace crosstalk::profile
