// SPDX-License-Identifier: Apache-2.0
// Progress of loops between two samples of a thread: their counters (symbolizer/loops/loop_counters.h) read twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "attribution/program/by_place.h"
#include "attribution/program/program_view.h"
#include "symbolizer/loops/loop_anatomy.h"

namespace crosstalk::attribution {

/// The relation of two moments of one loop, of one thread.
enum class Visit : std::uint8_t {
  same,     // as far as registers tell: same frame, same fixed registers, all counters equally many steps further
  another,  // the loop was left in between
  unknown,  // no counter can be read at both
};
struct Progress {
  Visit visit = Visit::unknown;
  double iterations = 0;  // when same
};
[[nodiscard]] Progress progress_between(const symbolizer::LoopMoment& from, const symbolizer::LoopMoment& to);

/// Two successive samples of a thread in one loop.
struct LoopStep {
  double cpu_s = 0;         // CPU time in between
  double callees_s = 0;     // of it, up to samples in functions that the loop called
  double iterations = 0;    // when same; whole ones
  bool same = false;        // else the loop was left in between
  bool anchored = false;    // the loop around it was in one and the same iteration
  std::uint32_t visit = 0;  // steps of one visit have one number
  /// `iterations` with the parts of iterations at both ends, by the progress of an inner loop that each iteration
  /// enters once and leaves after a known number of its own iterations; nullopt: no such loop was seen at both ends.
  std::optional<double> with_parts = std::nullopt;
  std::uint32_t thread = 0;  // index
};

/// All observations of a loop's progress.
struct LoopTrail {
  std::vector<LoopStep> steps;
  std::uint64_t samples = 0;
  std::uint64_t moved_on = 0;              // steps in which the loop around went on: this one was entered anew
  std::uint64_t unreadable = 0;            // steps with no counter to read
  bool counts = false;                     // it has counters
  double trips_least = 0, trips_most = 0;  // iterations of one visit, by the registers at samples
  std::uint64_t trips_read = 0;            // samples that told
};

struct LoopPlace {
  std::uint32_t file = 0;    // of AddressSpaces
  std::uint64_t header = 0;  // module address
  auto operator<=>(const LoopPlace&) const = default;
};

class LoopProgress {
 public:
  explicit LoopProgress(const ProgramView& view) : view_(view), waiting_(view.threads().size()) {}
  /// Takes samples of one thread in the order of time.
  void add(const profile::SampleRow& sample);
  [[nodiscard]] const std::map<LoopPlace, LoopTrail>& trails() const { return trails_; }

 private:
  /// A loop around an address, and the reader of its visits there.
  struct Around {
    std::uint32_t loop = 0;
    LoopTrail* trail = nullptr;
    bool counts = false;                             // it has counters
    std::optional<symbolizer::MomentReader> reader;  // nullopt: no instruction of the loop begins there
    const symbolizer::TripCount* trips = nullptr;    // by the registers of the loop around it; null: not known
  };
  /// A sampled place, and data that depend on it alone.
  struct Spot {
    symbolizer::LoopAnatomy* anatomy = nullptr;  // null: not known
    std::vector<Around> loops;                   // outermost first
  };
  struct Level {  // of a loop of the spot
    std::optional<symbolizer::LoopMoment> moment;
    std::optional<double> trips, done;  // iterations of this visit, in all and complete ones
    std::uint32_t visit = 0;
  };
  struct Position {
    const Spot* spot = nullptr;
    std::vector<Level> levels;  // by loop of the spot
    std::uint64_t stack = 0;    // rsp
    double since_s = 0, elsewhere_s = 0;
    std::uint32_t waited = 0;  // samples elsewhere since
    std::uint32_t thread = 0;
  };
  [[nodiscard]] const Spot& spot_of(const profile::SampleRow& sample);
  [[nodiscard]] Spot new_spot(ModulePlace place);
  void read_position(const profile::SampleRow& sample, Position& now);
  static void unwind(std::vector<Position>& waiting, const Position& now);
  static void step(const Position& last, Position& now);
  static void read_trips(Position& now);
  [[nodiscard]] static std::size_t common_loops(const Position& last, const Position& now);
  [[nodiscard]] static std::optional<double> parts_between(const Position& last, const Position& now, std::size_t loop);

  const ProgramView& view_;
  ByPlace<Spot> spots_;
  std::vector<std::vector<Position>> waiting_;  // by thread: functions last seen in a loop, callers first
  std::map<LoopPlace, LoopTrail> trails_;
  Position now_;  // of the sample that is added; kept for its memory
  std::uint32_t visits_ = 0;
};

}  // namespace crosstalk::attribution
