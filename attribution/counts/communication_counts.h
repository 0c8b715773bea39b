// SPDX-License-Identifier: Apache-2.0
// How many communications there were, not only how many were seen.
//
// communications = lines x steps of a counter x communications a step and line, where the lines are those that one
// thread consumes at the same instructions (line_lattice.h), the counter is a word of its state or of its producers'
// that goes on with the exchanges (exchange_clock.h), and its steps are counted from the first to the last trap of the
// run. Slow exchanges, which traps hardly delay, go by the time instead. Whatever is not regular enough for either is
// not known, with a reason: the number would be that of the watched program and not of the unwatched one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attribution/counts/count_evidence.h"
#include "attribution/counts/trap_index.h"
#include "attribution/timeline/seen.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// Half of the 95 % interval of a count that is told, as a part of it.
inline constexpr double most_count_error = 0.25;
inline constexpr const char* too_little_seen =
    "too little was seen: its interval would be wider than a quarter of it to each side";

/// Communications of one kind: of one thread, on the lines that it consumes alike.
struct CountGroup {
  std::optional<double> count;     // all of them
  double error = 0;                // half of its 95 % interval, as a part of it
  std::string unknown;             // why there is no count; empty when there is
  std::vector<CountedLine> lines;  // by address; their parts add up to 1
  double all_lines = 1;            // those included on which nothing was seen

  /// What is seen of some of a group's communications, by line of `lines` as in `seen`: their part of the group's, and
  /// its variance. How often a line was watched follows what it costs; each is exchanged as often as the others.
  struct Part {
    double value = 0, variance = 0;
  };
  [[nodiscard]] Part part_of(const std::map<std::uint32_t, double>& seen) const;
};

/// Which group each communication that was seen belongs to, and which of its lines. Refers to the timelines.
class CountTable {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Place {
    std::uint32_t group = none, line = 0;
  };
  std::vector<CountGroup> groups;
  /// Of a communication of the timeline of a watch; none for others.
  [[nodiscard]] Place place(std::uint32_t watch, const SeenCommunication* seen) const;
  /// Room for the places of all communications of `timelines`, which are not to change any more.
  void make_places(std::span<const OwnershipTimeline> timelines);
  void put(std::uint32_t watch, const SeenCommunication* seen, Place place);

 private:
  /// SIZE_MAX: it is none of the watch's.
  [[nodiscard]] std::size_t index_of(std::uint32_t watch, const SeenCommunication* seen) const;

  std::span<const OwnershipTimeline> timelines_;
  std::vector<std::uint32_t> begins_;  // by watch, in places_
  std::vector<Place> places_;
};

struct CountInputs {
  std::span<const profile::WatchRow> watches;
  const TrapIndex& traps;
  std::span<const OwnershipTimeline> timelines;  // by watch
  const ConsumerSamples& samples;
  double trap_cost_ns = 0;                           // of one trap, as calibrated
  std::span<const profile::ThreadRow> threads = {};  // by id; one that is not there has no known begin and end
};
[[nodiscard]] CountTable count_communications(const CountInputs& inputs);

}  // namespace crosstalk::attribution
