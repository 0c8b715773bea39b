// SPDX-License-Identifier: Apache-2.0
// Checks that a record's fields are possible: pure functions, on copies in our own memory.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "profile/counter_reading.h"
#include "profile/ring_reader.h"

namespace crosstalk::daemon {

/// A stack as a record carries it: registers, and the bytes from rsp upward.
struct StackView {
  profile::StackSlice slice;
  std::span<const std::byte> bytes;
};

/// Returns the stack in a tail that begins with a StackSlice; nullopt if it does not fit.
[[nodiscard]] std::optional<StackView> stack_in(std::span<const std::byte> tail);

[[nodiscard]] bool possible(const profile::Sample& record);
[[nodiscard]] bool possible(const profile::WatchOpen& record);
[[nodiscard]] bool possible(const profile::LineProbe& record);
[[nodiscard]] bool possible(const profile::WatchTrap& record);
[[nodiscard]] bool possible(const profile::WatchClose& record);
[[nodiscard]] bool possible(const profile::Block& record);
[[nodiscard]] bool possible(const profile::SharedMapping& record);
/// `way`: the record's tail.
[[nodiscard]] bool possible(const profile::Lookahead& record, std::span<const std::byte> way);
[[nodiscard]] bool possible(const profile::CounterReading& record, std::size_t tail_bytes);
[[nodiscard]] bool possible(const profile::ModuleLoad& record);

/// Returns the text of a fixed array that may lack its NUL.
[[nodiscard]] std::string text_of(std::span<const char> characters);
/// Returns the text of a tail, up to its end or first NUL.
[[nodiscard]] std::string text_of(std::span<const std::byte> bytes);
/// Returns one printable line: control characters become spaces.
[[nodiscard]] std::string one_line(std::string text);
/// Returns a stable code of lower-case letters, digits and underscores; other characters become underscores.
[[nodiscard]] std::string code_of(std::span<const char> characters);
/// Returns the words quoted for a POSIX shell.
[[nodiscard]] std::string shell_quoted(std::span<const std::string> words);

}  // namespace crosstalk::daemon
