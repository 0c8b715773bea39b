// SPDX-License-Identifier: Apache-2.0
// The collector's rules of watching (collectors/in_target/sampling/sampling.cpp and watch_unit.cpp), with accesses that
// are told instead of trapping: which samples open a watch, which words are drawn, who is armed for what, when it
// closes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectors/in_target/session/budget.h"
#include "collectors/in_target/watch/board.h"
#include "profile/model.h"
#include "tests/simulation/program.h"

namespace crosstalk::simulation {

inline constexpr std::uint64_t first_line_address = 0x10000000;
[[nodiscard]] constexpr std::uint64_t address_of(std::uint32_t line) {
  return first_line_address + std::uint64_t{line} * profile::cache_line;
}
/// The address after a simulated instruction, which tells what it does.
[[nodiscard]] constexpr std::uint64_t ip_after(AccessKind kind) {
  return 0x400000 + 16 * static_cast<std::uint64_t>(kind);
}

class Watching {
 public:
  Watching(const Observer& observer, std::uint32_t threads, std::uint64_t seed);

  /// A thread's clock has run out; its last access is in the row. Sets the row's flags and watch.
  void sample(profile::SampleRow& row);
  /// A thread accesses a line. Returns how many watchpoints it ran into.
  std::uint32_t access(std::uint32_t thread, const Access& access, double now_ns);
  /// Closes watches whose alarm has rung by now.
  void pass(double now_ns);
  /// Closes all that is open.
  void finish(double now_ns);

  [[nodiscard]] std::vector<profile::WatchRow> take_watches() { return std::move(watches_); }
  /// By watch, then sequence.
  [[nodiscard]] std::vector<profile::TrapRow> take_traps();

 private:
  enum class Mode : std::uint8_t { off, write_only, read_write };
  static constexpr std::uint32_t words_per_slot = 2, max_slots = 2, max_threads = 16;

  struct Slot {
    std::uint32_t watch = 0;  // id; 0: idle
    std::uint32_t sequence = 0, runner = 0, runs = 0, words = 0;
    bool suspected = false, stored = false, brief = false;
    std::uint64_t line = 0;
    double deadline_ns = 0, cost_ns = 0;
    std::array<profile::WatchWord, words_per_slot> word{};
    std::array<std::array<Mode, words_per_slot>, max_threads> mode{};
  };

  [[nodiscard]] std::uint32_t first_slot(bool suspected) const { return suspected || slots_ == 1 ? 0 : 1; }
  [[nodiscard]] std::uint32_t last_slot(bool suspected) const { return suspected && slots_ > 1 ? 1 : slots_; }
  Slot* room(bool suspected, double now_ns);
  [[nodiscard]] bool passed_over(const in_target::Suspicion& known);
  void open(Slot& slot, profile::SampleRow& row, const in_target::Suspicion& suspicion, bool suspected);
  void choose_words(Slot& slot, const profile::SampleRow& row, const in_target::Suspicion& suspicion);
  void arm(Slot& slot, const profile::SampleRow& row);
  bool trap(Slot& slot, std::uint32_t thread, std::uint32_t word, const Access& access, double now_ns);
  void close(Slot& slot, double now_ns, profile::CloseReason reason);
  void spend(double ns, bool exploring);
  profile::LineState& state_of(std::uint64_t line);

  const Observer observer_;  // its own: callers pass what they just made
  std::uint32_t threads_, slots_;
  Random random_;
  std::unique_ptr<in_target::Board> board_ = std::make_unique<in_target::Board>();
  in_target::Budget budget_;
  double mean_cost_ns_;
  std::vector<profile::LineState> states_;  // by line; each store counts one on
  std::array<Slot, max_slots> slot_{};
  std::vector<profile::WatchRow> watches_;
  std::vector<profile::TrapRow> traps_;
};

}  // namespace crosstalk::simulation
