// SPDX-License-Identifier: Apache-2.0
// Estimates the number of all communications, not only of those seen.
//
// communications = lines x steps of a counter x communications a step and line. The lines are those that one thread
// consumes at the same instructions (line_lattice.h). The counter is a word of its state or of its producers' that
// advances with the exchanges (exchange_clock.h), and its steps are counted from the first to the last trap of the run.
// Slow exchanges, which traps hardly delay, go by the time instead. Exchanges that are not regular enough for either
// have no count, with a reason: it would be the count of the watched program, not of the unwatched one.
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

/// The widest half of a 95 % interval of a reported count, as a part of the count.
inline constexpr double most_count_error = 0.25;
inline constexpr const char* too_little_seen =
    "too little was seen: its interval would be wider than a quarter of it to each side";

/// Communications of one kind: of one thread, on lines that it consumes in the same way.
struct CountGroup {
  std::optional<double> count;     // all of them
  double error = 0;                // half of its 95 % interval, as a part of it
  std::string unknown;             // why there is no count; empty when there is
  std::vector<CountedLine> lines;  // by address; their parts add up to 1
  double all_lines = 1;            // lines without communication seen included

  /// The part of a group's communications that some of them make up, and its variance. `seen`: by line of `lines`. A
  /// line is watched as often as its cost demands, while all lines are exchanged equally often.
  struct Part {
    double value = 0, variance = 0;
  };
  [[nodiscard]] Part part_of(const std::map<std::uint32_t, double>& seen) const;
};

/// The group and the line of each communication seen. Refers to the timelines.
class CountTable {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Place {
    std::uint32_t group = none, line = 0;
  };
  std::vector<CountGroup> groups;
  /// The place of a communication in the timeline of a watch; none for others.
  [[nodiscard]] Place place(std::uint32_t watch, const SeenCommunication* seen) const;
  /// Makes room for the places of all communications of `timelines`, which must not change afterwards.
  void make_places(std::span<const OwnershipTimeline> timelines);
  void put(std::uint32_t watch, const SeenCommunication* seen, Place place);

 private:
  /// SIZE_MAX: the communication is not the watch's.
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
