// SPDX-License-Identifier: Apache-2.0
// The true state of one cache line: every access is seen, so every communication is known by its definition.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/registers.h"

namespace crosstalk::simulation {

inline constexpr std::uint32_t words_in_line = 8;
inline constexpr std::uint64_t word_bytes = 8;

struct Access {
  std::uint32_t line = 0;  // index among the program's lines
  std::uint32_t word = 0;
  AccessKind kind = AccessKind::load;
};

/// A communication: the consumer is who makes the access.
struct Transfer {
  std::uint32_t producer = 0;
  bool true_sharing = false;
};

class SharedLine {
 public:
  explicit SharedLine(std::uint32_t threads) : last_access_(threads, 0), stored_(threads) {}

  /// Returns the transfer that an access by `thread` would cause now.
  [[nodiscard]] std::optional<Transfer> transfer(std::uint32_t thread, const Access& access) const;
  /// True if a store by `thread` would take the line from others that have read it since the thread's last access.
  [[nodiscard]] bool invalidates(std::uint32_t thread, const Access& access) const;
  void touch(std::uint32_t thread, const Access& access);

 private:
  using Moments = std::array<std::uint64_t, words_in_line>;  // 0: never
  std::uint64_t now_ = 0, last_store_ = 0;                   // number of the access
  std::uint32_t last_storer_ = 0, last_toucher_ = UINT32_MAX;
  std::vector<std::uint64_t> last_access_;  // by thread
  std::vector<Moments> stored_;             // by thread, by word
};

}  // namespace crosstalk::simulation
