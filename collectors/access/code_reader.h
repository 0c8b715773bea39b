// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace crosstalk::in_target {

/// The finder's access to the target's memory. Both functions copy `bytes` bytes at `address` to `out`, or return false
/// and leave `out` in any state; they must be safe for every address. `read` is asked for code around the instruction
/// pointer and along the interpreted path, never across a page boundary in one call; `read_data` for aligned blocks of
/// 64 bytes of the thread's stack, or of tables of addresses, that the path depends on; for the bytes themselves if
/// such a block cannot be read. `read_now` is for a guess: it may also give data that have changed since the thread was
/// interrupted, and must read nothing that the program might have to fill first. Null: `read_data` serves.
struct CodeReader {
  void* context = nullptr;
  bool (*read)(void* context, std::uint64_t address, void* out, std::size_t bytes) = nullptr;
  bool (*read_data)(void* context, std::uint64_t address, void* out, std::size_t bytes) = nullptr;
  bool (*read_now)(void* context, std::uint64_t address, void* out, std::size_t bytes) = nullptr;
};

}  // namespace crosstalk::in_target
