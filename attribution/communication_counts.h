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

#include "attribution/line_lattice.h"
#include "attribution/watch_story.h"
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

/// Samples at the instructions that consume, made from the stories and then told of every sample.
class ConsumerSamples {
 public:
  explicit ConsumerSamples(std::span<const WatchStory> stories);
  void add(const profile::SampleRow& sample);
  [[nodiscard]] const std::map<ConsumerSite, SiteSamples>& sites() const { return sites_; }

 private:
  std::map<ConsumerSite, SiteSamples> sites_;
  std::set<std::uint64_t> instructions_;  // a quick no
};

/// Communications of one kind: of one thread, on the lines that it consumes alike.
struct CountGroup {
  std::optional<double> count;  // all of them
  double error = 0;             // half of its 95 % interval, as a part of it
  std::string unknown;          // why there is no count; empty when there is
  double seen = 0;              // weighted sum of communications seen
  double watches = 0;           // watches that saw them
};

/// Which group each communication that was seen belongs to. Refers to the stories.
class CountTable {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;
  std::vector<CountGroup> groups;
  std::unordered_map<const SeenCommunication*, std::uint32_t> group_of;
  [[nodiscard]] std::uint32_t group(const SeenCommunication* seen) const {
    const auto found = group_of.find(seen);
    return found == group_of.end() ? none : found->second;
  }
};

struct CountInputs {
  std::span<const profile::WatchRow> watches;
  std::span<const profile::TrapRow> traps;  // by watch, then by sequence
  std::span<const WatchStory> stories;      // by watch
  const ConsumerSamples& samples;
  double trap_cost_ns = 0;  // of one trap, as calibrated
};
[[nodiscard]] CountTable count_communications(const CountInputs& inputs);

}  // namespace crosstalk::attribution
