// SPDX-License-Identifier: Apache-2.0
// The data of communication_counts.cpp: groups of communications, and the cycles of threads in their watches.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "attribution/counts/exchange_clock.h"
#include "attribution/counts/line_lattice.h"
#include "attribution/counts/trap_index.h"
#include "attribution/timeline/seen.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// One thread at one consuming instruction.
struct ConsumerSite {
  std::uint32_t thread = 0;
  std::uint64_t instruction = 0;  // run-time address
  auto operator<=>(const ConsumerSite&) const = default;
};
struct SiteSamples {
  LineSamples lines;
  std::uint64_t samples = 0, first_ns = 0, last_ns = 0;
  std::size_t communications = 0;  // seen when this was made
};

/// Samples at the consuming instructions. Make it from the timelines, then call add() for every sample.
class ConsumerSamples {
 public:
  explicit ConsumerSamples(std::span<const OwnershipTimeline> timelines);
  void add(const profile::SampleRow& sample);
  [[nodiscard]] const std::map<ConsumerSite, SiteSamples>& sites() const { return sites_; }

 private:
  std::map<ConsumerSite, SiteSamples> sites_;
  std::set<std::uint64_t> instructions_;  // a quick no
};

/// A line with communications seen.
struct CountedLine {
  double part = 1;     // of its group's lines: it stands for those that it is nearest to
  double seen = 0;     // weighted sum of communications seen
  double watches = 0;  // with communications
};

/// A communication seen.
struct SeenAt {
  std::uint32_t watch = 0;  // index
  const SeenCommunication* seen = nullptr;
};

/// Communications of one consumer on one cluster of lines, by any instructions.
struct ExchangeGroup {
  std::uint32_t consumer = 0;
  std::set<std::uint64_t> instructions;  // by which it consumes; run-time addresses
  LineCluster lines;
  std::vector<SeenAt> seen;
  std::vector<std::uint32_t> watches;                    // with communications, ascending
  std::uint64_t samples = 0, first_ns = 0, last_ns = 0;  // of the consumer's accesses; 0 when there were none
};
[[nodiscard]] std::vector<ExchangeGroup> exchange_groups(std::span<const profile::WatchRow> watches,
                                                         std::span<const OwnershipTimeline> timelines,
                                                         const ConsumerSamples& samples);

/// The lines on which a group was seen, by address.
[[nodiscard]] std::map<std::uint64_t, CountedLine> counted_lines(const ExchangeGroup& group);

/// A thread's first access to a line after others (a taking), and what the watch saw of the thread afterwards.
struct Ending {
  enum class Kind : std::uint8_t {
    cycle,      // it took the line at the same instruction again
    elsewhere,  // at others only
    last,       // no more
  };
  Kind kind = Kind::last;
  std::uint32_t runs = 0;  // of owners that followed, to the end of the watch
};

/// The cycles and endings of a thread at an instruction.
struct Followed {
  std::vector<Cycle> cycles;
  std::vector<Ending> endings;
};
/// By the address after the access.
using CyclesByIp = std::map<std::uint64_t, Followed>;
/// A communication of a group's consumer, or a possible producer's part of one.
struct Exchange {
  std::uint64_t time_ns = 0;
  double share = 1;
};
/// All exchanges of a group's watches without gaps.
class GroupExchanges {
 public:
  struct Watch {
    std::uint32_t index = 0;
    std::size_t begin = 0, count = 0;  // of its exchanges
  };
  GroupExchanges(const ExchangeGroup& group, std::span<const OwnershipTimeline> timelines);
  [[nodiscard]] std::span<const Watch> watches() const { return watches_; }
  [[nodiscard]] std::span<const Exchange> of(const Watch& watch) const {
    return std::span(all_).subspan(watch.begin, watch.count);
  }

 private:
  std::vector<Watch> watches_;
  std::vector<Exchange> all_;
};
/// The cycles of `thread` in the group's watches.
[[nodiscard]] CyclesByIp cycles_of(const GroupExchanges& group, std::uint32_t thread, const TrapIndex& traps,
                                   std::span<const profile::WatchRow> watches);

}  // namespace crosstalk::attribution
