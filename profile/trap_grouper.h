// SPDX-License-Identifier: Apache-2.0
// Groups traps, which come in the order written, by watch. Internal to the reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "profile/model.h"

namespace crosstalk::profile {

/// A watch is complete after this many traps of others since its last one. If another of its traps comes later, the
/// order written is of no use.
class TrapGrouper {
 public:
  using Visit = std::function<void(std::size_t watch, std::span<const TrapRow> traps)>;
  /// More than the rings of a hundred threads hold.
  static constexpr std::uint64_t window_rows = 32768;

  /// `watches` are by id. Both must outlive this.
  TrapGrouper(std::span<const WatchRow> watches, const Visit& visit);
  /// Leaves out traps of unknown watches and words, whose opening was lost.
  void add(const TrapRow& trap);
  /// Visits the rest. False if a trap came too late: all visits are then invalid.
  [[nodiscard]] bool finish();

 private:
  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max(), done = none - 1;
  struct Group {
    std::uint32_t watch = 0;
    std::uint64_t last = 0;            // number of its last trap
    std::vector<std::uint32_t> traps;  // places in rows_
  };
  struct Arrival {
    std::uint64_t number = 0;
    std::uint32_t group = 0;
  };
  [[nodiscard]] std::uint32_t watch_of(const TrapRow& trap);
  [[nodiscard]] std::uint32_t new_group(std::uint32_t watch);
  [[nodiscard]] std::uint32_t keep(const TrapRow& trap);
  void visit_oldest();

  std::span<const WatchRow> watches_;
  const Visit& visit_;
  std::vector<std::uint32_t> group_of_;  // by watch; none: no trap of it came; done: it was visited
  std::vector<Group> groups_;
  std::vector<std::uint32_t> free_;    // groups
  std::deque<Arrival> arrivals_;       // of the traps that are kept
  std::vector<TrapRow> rows_;          // large, so that each stays where it is until it is visited
  std::vector<std::uint32_t> unused_;  // of them
  std::vector<TrapRow> visited_;
  std::uint64_t number_ = 0;
  std::uint32_t last_watch_ = 0;  // traps of one watch come together
  bool late_ = false;
};

}  // namespace crosstalk::profile
