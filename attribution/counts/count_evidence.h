// SPDX-License-Identifier: Apache-2.0
// What communication_counts.cpp works on: groups of communications, and the cycles of threads in their watches.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "attribution/counts/communication_counts.h"
#include "attribution/counts/exchange_clock.h"

namespace crosstalk::attribution {

/// A communication that was seen.
struct SeenAt {
  std::uint32_t watch = 0;  // index
  const SeenCommunication* seen = nullptr;
};

/// Communications of one consumer on one cluster of lines, by whichever instructions.
struct ExchangeGroup {
  std::uint32_t consumer = 0;
  std::set<std::uint64_t> instructions;  // by which it consumes; run-time addresses
  LineCluster lines;
  std::vector<SeenAt> seen;
  std::vector<std::uint32_t> watches;                    // that saw them, ascending
  std::uint64_t samples = 0, first_ns = 0, last_ns = 0;  // of the consumer's accesses; 0 when there were none
};
[[nodiscard]] std::vector<ExchangeGroup> exchange_groups(std::span<const profile::WatchRow> watches,
                                                         std::span<const OwnershipTimeline> timelines,
                                                         const ConsumerSamples& samples);

/// The lines on which a group was seen, by address.
[[nodiscard]] std::map<std::uint64_t, CountedLine> counted_lines(const ExchangeGroup& group);

/// Traps by watch and by (thread, instruction). Refers to the rows.
class TrapIndex {
 public:
  TrapIndex(std::span<const profile::WatchRow> watches, std::span<const profile::TrapRow> traps);
  [[nodiscard]] std::span<const profile::TrapRow> of(std::uint32_t watch) const;
  /// By time.
  [[nodiscard]] std::span<const Standing> standings(std::uint32_t thread, std::uint64_t ip) const;
  /// The same for each other instruction of the thread.
  [[nodiscard]] std::vector<std::span<const Standing>> elsewhere(std::uint32_t thread, std::uint64_t ip) const;

 private:
  std::span<const profile::TrapRow> traps_;
  std::vector<std::pair<std::size_t, std::size_t>> of_watch_;                    // begin, count
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<Standing>> at_;  // each by time
};

/// A taking of a line, and what the watch saw of the thread after it.
struct Ending {
  enum class Kind : std::uint8_t {
    cycle,      // it took the line at the same instruction again
    elsewhere,  // at others only
    last,       // no more
  };
  Kind kind = Kind::last;
  std::uint32_t runs = 0;  // of owners that followed, to the end of the watch
};

/// What was followed of a thread at an instruction.
struct Followed {
  std::vector<Cycle> cycles;
  std::vector<Ending> endings;
};
/// By the address behind the access.
using CyclesByIp = std::map<std::uint64_t, Followed>;
/// Of `thread` in the group's watches.
[[nodiscard]] CyclesByIp cycles_of(const ExchangeGroup& group, std::uint32_t thread, const TrapIndex& traps,
                                   std::span<const profile::WatchRow> watches,
                                   std::span<const OwnershipTimeline> timelines);

}  // namespace crosstalk::attribution
