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
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "attribution/counts/line_lattice.h"
#include "attribution/timeline/ownership_timeline.h"
#include "profile/model.h"

namespace crosstalk::attribution {

/// One thread at one instruction that consumes.
struct ConsumerSite {
  std::uint32_t thread = 0;
  std::uint64_t instruction = 0;  // run-time address
  auto operator<=>(const ConsumerSite&) const = default;
};
struct SiteSamples {
  LineSamples lines;
  std::uint64_t samples = 0, first_ns = 0, last_ns = 0;
};

/// Samples at the instructions that consume, made from the timelines and then told of every sample.
class ConsumerSamples {
 public:
  explicit ConsumerSamples(std::span<const OwnershipTimeline> timelines);
  void add(const profile::SampleRow& sample);
  [[nodiscard]] const std::map<ConsumerSite, SiteSamples>& sites() const { return sites_; }

 private:
  std::map<ConsumerSite, SiteSamples> sites_;
  std::set<std::uint64_t> instructions_;  // a quick no
};

/// Half of the 95 % interval of a count that is told, as a part of it.
inline constexpr double most_count_error = 0.25;
inline constexpr const char* too_little_seen =
    "too little was seen: its interval would be wider than a quarter of it to each side";

/// A line on which communications were seen.
struct CountedLine {
  double part = 1;     // of its group's lines: it stands for those that it is nearest to
  double seen = 0;     // weighted sum of communications seen
  double watches = 0;  // that saw them
};

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
  std::unordered_map<const SeenCommunication*, Place> places;
  [[nodiscard]] Place place(const SeenCommunication* seen) const {
    const auto found = places.find(seen);
    return found == places.end() ? Place{} : found->second;
  }
};

struct CountInputs {
  std::span<const profile::WatchRow> watches;
  std::span<const profile::TrapRow> traps;       // by watch, then by sequence
  std::span<const OwnershipTimeline> timelines;  // by watch
  const ConsumerSamples& samples;
  double trap_cost_ns = 0;                           // of one trap, as calibrated
  std::span<const profile::ThreadRow> threads = {};  // by id; one that is not there has no known begin and end
};
[[nodiscard]] CountTable count_communications(const CountInputs& inputs);

}  // namespace crosstalk::attribution
