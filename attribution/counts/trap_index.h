// SPDX-License-Identifier: Apache-2.0
// Traps by watch and by thread and instruction, with the states of their threads.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "attribution/counts/exchange_clock.h"
#include "attribution/counts/trap_states.h"
#include "profile/model.h"

namespace crosstalk::attribution {

class TrapIndex {
 public:
  /// A row of the states at a place: a thread at an instruction.
  struct Trap {
    std::uint32_t place = 0, row = 0;
  };

  /// `traps` are those of a watch by sequence. At most one call for each watch, in any order.
  void add(std::uint32_t watch, std::span<const profile::TrapRow> traps);
  /// Call it after all traps: frees spare memory.
  void shrink();

  /// By sequence.
  [[nodiscard]] std::span<const Trap> of(std::uint32_t watch) const;
  [[nodiscard]] std::uint32_t thread(Trap trap) const { return by_place_[trap.place].thread; }
  /// The address after the access.
  [[nodiscard]] std::uint64_t ip(Trap trap) const { return by_place_[trap.place].ip; }
  [[nodiscard]] const TrapStates& states(Trap trap) const { return *by_place_[trap.place].states; }
  [[nodiscard]] std::size_t size() const { return traps_.size(); }

  /// By time.
  [[nodiscard]] std::vector<Standing> standings(std::uint32_t thread, std::uint64_t ip) const;
  /// The same for each other instruction of the thread.
  [[nodiscard]] std::vector<std::vector<Standing>> elsewhere(std::uint32_t thread, std::uint64_t ip) const;

 private:
  struct Place {
    std::uint32_t thread = 0;
    std::uint64_t ip = 0;
    TrapStates* states = nullptr;
  };
  [[nodiscard]] std::uint32_t place_of(const profile::TrapRow& trap);

  std::deque<TrapStates> states_;  // they stay where they are: cycles refer to them
  std::vector<Place> by_place_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> place_ids_;
  std::array<std::uint32_t, 4> latest_{};  // places: the traps of a watch are at a few
  std::size_t next_ = 0;                   // of them to be replaced
  std::vector<Trap> traps_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> of_watch_;  // begin, count
};

}  // namespace crosstalk::attribution
