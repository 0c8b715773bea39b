// SPDX-License-Identifier: Apache-2.0
// The result of comparing two profiles, before and after a change: compare() makes it, conditions and renderers read
// it. docs/diff-json.md says how rows are matched and judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attribution/comparison/figure.h"
#include "attribution/comparison/place_map.h"
#include "attribution/model/model.h"

namespace crosstalk::attribution::comparison {

/// The unit in which costs are compared.
enum class Unit : std::uint8_t {
  seconds,  // of thread time: both profiles hold the same work
  share,    // of each profile's CPU time
};

enum class Verdict : std::uint8_t {
  better,   // less time in communication
  worse,    // more
  less,     // less, but by what the reports say none of can be saved: waiting, or threads on one processor
  more,     // more of such
  same,     // no difference that can be told
  unknown,  // one of the profiles cannot say, or what it has not detected may account for the change
};
[[nodiscard]] const char* verdict_name(Verdict verdict);

enum class Matched : std::uint8_t { both, gone, appeared };

/// Communication of a row in one profile. Times are seconds.
struct Costs {
  Figure cost, gain, count;
  std::uint64_t seen = 0;
};
/// The subject of a row in one profile.
struct Subject {
  std::string name;      // of the object; of the consuming threads
  std::string producer;  // of the producing threads
  Place producer_at, consumer_at;
  std::optional<SharingKind> sharing;
};
struct Row {
  Matched matched = Matched::both;
  Subject subject;      // in the profile after; in the one before where it is gone
  Subject was;          // in the profile before; empty where it has appeared
  Costs before, after;  // of a profile that lacks the row: at most what is undetected there
  Costs change;
  Figure share_change, gain_share_change;  // of CPU time
  Verdict verdict = Verdict::unknown;
};

/// A loop in one profile.
struct LoopFigures {
  Figure cpu_s, share;
  Figure iteration_s;  // CPU time of one iteration
};
struct LoopChange {
  Matched matched = Matched::both;
  Place subject, was;  // the loop's begin
  std::uint32_t line_end = 0;
  LoopFigures before, after, change;
  Verdict verdict = Verdict::unknown;
};

/// CPU time of a named thing, for conditions.
struct TimeRow {
  enum class Kind : std::uint8_t { loop, function, line, thread, region };
  Kind kind = Kind::function;
  std::string name;  // of a loop and a line, "file:line"; of a loop without lines, its function
  Figure before, after;
};

/// Thread time in one class of waits for other threads, all threads together.
struct WaitRow {
  profile::WaitClass what = profile::WaitClass::lock;
  Figure before, after, change;  // seconds; nothing of a profile that did not measure them
  Verdict verdict = Verdict::unknown;
};

struct Statement {
  std::string sentence;
  Verdict verdict = Verdict::same;
};

struct Comparison {
  Unit unit = Unit::seconds;
  std::string unit_reason;  // why, a sentence
  double run_to_run = 0;
  double before_cpu_s = 0, after_cpu_s = 0;
  double before_duration_s = 0, after_duration_s = 0;
  Figure cpu_change;
  Row total;                                 // all communication
  std::vector<Row> objects, lines, threads;  // the surest and greatest change first
  std::vector<LoopChange> loops;
  std::vector<TimeRow> times;
  std::vector<WaitRow> waits;  // empty: neither profile measured one
  std::vector<Warning> warnings;
  // The reason why watchpoints could not show all communication, in words that name the profile; empty: they could.
  std::string blind_before, blind_after;
  Undetected undetected_before, undetected_after;
  std::vector<Statement> statements;  // the first says whether it helped; never empty
  bool in_common = true;              // anything is in both profiles
};

/// The change that is judged, in the comparison's unit.
[[nodiscard]] const Figure& judged_change(const Row& row, Unit unit);
[[nodiscard]] const Figure& judged_change(const LoopChange& loop, Unit unit);

}  // namespace crosstalk::attribution::comparison
