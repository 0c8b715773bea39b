// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "attribution/comparison/comparable.h"
#include "attribution/comparison/entries.h"
#include "attribution/comparison/in_common.h"
#include "attribution/comparison/statements.h"
#include "attribution/comparison/time_rows.h"
#include "attribution/comparison/wait_rows.h"

namespace crosstalk::attribution::comparison {
namespace {

constexpr double nearly_nothing = 0.05;  // of a cost: not worth saving

/// Two analyses, and the way to compare them.
struct Sides {
  const Analysis& before;
  const Analysis& after;
  Unit unit = Unit::seconds;
  double run_to_run = 0;
};

double part(double cpu_s) { return cpu_s > 0 ? 1 / cpu_s : 0; }

Figure share_change(const Sides& sides, const Figure& before, const Figure& after) {
  if (!(sides.before.cpu_s > 0) || !(sides.after.cpu_s > 0)) {
    return {};
  }
  return change_of(scaled(before, part(sides.before.cpu_s)), scaled(after, part(sides.after.cpu_s)), sides.run_to_run);
}

/// True if a report says that hardly any of the cost can be saved.
bool can_not_be_saved(const Costs& costs) {
  return costs.cost.value && costs.gain.value && *costs.gain.value <= nearly_nothing * *costs.cost.value;
}

/// The cost that a row may have in a profile beyond its interval. Watches of the row tell what they missed of it;
/// probes and samples do not, so that only a profile of the same kind is comparable. No row holds what others have not
/// detected but that of all communication. A row that the profile lacks has the limit in its interval.
double hidden_s(const Sides& sides, const Costs& costs, bool of_before, bool of_all) {
  const Undetected& own = (of_before ? sides.before : sides.after).communication.undetected;
  const Undetected& other = (of_before ? sides.after : sides.before).communication.undetected;
  const bool comparable = own.evidence == EvidenceKind::watched || own.evidence == other.evidence;
  return costs.seen == 0 || (comparable && !of_all) ? 0 : own.at_most_s.value_or(0);
}

/// True if the change has the same direction with all that may be hidden.
bool is_certain(const Sides& sides, const Row& row, int direction, bool of_all) {
  const bool by_before = direction > 0;
  const double s = hidden_s(sides, by_before ? row.before : row.after, by_before, of_all);
  const double cpu_s = (by_before ? sides.before : sides.after).cpu_s;
  const double hidden = sides.unit == Unit::seconds ? s : s * part(cpu_s);
  const Interval& change = *judged_change(row, sides.unit).ci95;
  return direction > 0 ? change.low > hidden : change.high < -hidden;
}

Verdict judge(const Sides& sides, const Row& row, bool of_all) {
  if (!row.before.cost.ci95 || !row.after.cost.ci95) {
    return Verdict::unknown;
  }
  const int direction = direction_of(judged_change(row, sides.unit));
  if (direction == 0) {
    return row.before.cost.value && row.after.cost.value ? Verdict::same : Verdict::unknown;
  }
  if (!is_certain(sides, row, direction, of_all)) {
    return Verdict::unknown;
  }
  // The verdict refers to the greater cost.
  const Costs& spoken_of = direction < 0 ? row.before : row.after;
  if (can_not_be_saved(spoken_of)) {
    return direction < 0 ? Verdict::less : Verdict::more;
  }
  return direction < 0 ? Verdict::better : Verdict::worse;
}

void compare_costs(const Sides& sides, Row& row, bool of_all = false) {
  row.change.cost = change_of(row.before.cost, row.after.cost, sides.run_to_run);
  row.change.gain = change_of(row.before.gain, row.after.gain, sides.run_to_run);
  row.change.count = change_of(row.before.count, row.after.count, sides.run_to_run);
  row.share_change = share_change(sides, row.before.cost, row.after.cost);
  row.gain_share_change = share_change(sides, row.before.gain, row.after.gain);
  row.verdict = judge(sides, row, of_all);
}

Row row_of(const Sides& sides, const Pairing& pair) {
  Row row;
  row.matched = pair.before == nullptr ? Matched::appeared : pair.after == nullptr ? Matched::gone : Matched::both;
  row.subject = (pair.after != nullptr ? pair.after : pair.before)->subject;
  row.was = pair.before != nullptr ? pair.before->subject : Subject{};
  row.before = pair.before != nullptr ? pair.before->costs : unseen_costs(sides.before);
  row.after = pair.after != nullptr ? pair.after->costs : unseen_costs(sides.after);
  compare_costs(sides, row);
  return row;
}

/// Order of rows: certain changes first, then the greater change, then the greater cost.
template <class Each>
auto rank(const Each& row, Unit unit, double greatest) {
  const Figure& change = judged_change(row, unit);
  const bool told = direction_of(change) != 0;
  return std::tuple(!told, told ? -std::fabs(change.value.value_or((change.ci95->low + change.ci95->high) / 2)) : 0.0,
                    -greatest);
}

std::vector<Row> rows_of(const Sides& sides, const std::vector<Pairing>& pairs) {
  std::vector<Row> rows;
  rows.reserve(pairs.size());
  for (const Pairing& pair : pairs) {
    rows.push_back(row_of(sides, pair));
  }
  const auto key = [&](const Row& row) {
    const double greatest = std::max(row.before.cost.value.value_or(0), row.after.cost.value.value_or(0));
    return std::tuple_cat(rank(row, sides.unit, greatest), std::tie(row.subject.name, row.subject.producer,
                                                                    row.subject.consumer_at, row.subject.producer_at));
  };
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) { return key(a) < key(b); });
  return rows;
}

Row total_of(const Sides& sides) {
  Row row;
  const auto all = [](const Analysis& analysis) {
    const Communication& c = analysis.communication;
    Costs costs = costs_of(c.true_sharing, c.false_sharing, analysis.cpu_s);
    return costs.cost.known() ? costs : unseen_costs(analysis);
  };
  row.subject.name = row.was.name = "all communication";
  row.before = all(sides.before);
  row.after = all(sides.after);
  compare_costs(sides, row, true);
  return row;
}

/// Loops of one place together: a single one of several compiler copies says nothing alone.
struct LoopEntry {
  Place place;
  std::uint32_t line_end = 0;
  LoopFigures figures;
  std::size_t copies = 0;
};
using LoopKey = std::tuple<Place, std::uint32_t, std::uint32_t>;  // begin, number of lines, depth

Figure iteration_time(const LoopRow& loop) {
  const Rate& rate = loop.rates.iterations;
  if (!rate.per_s || !(*rate.per_s > 0)) {
    return {};
  }
  Figure time{1 / *rate.per_s, std::nullopt};
  if (rate.ci95 && rate.ci95->low > 0) {
    time.ci95 = Interval{1 / rate.ci95->high, 1 / rate.ci95->low};
  }
  return time;
}

std::map<LoopKey, LoopEntry> loop_entries(const Analysis& analysis, const PlaceMap* places) {
  std::map<LoopKey, LoopEntry> entries;
  for (const LoopRow& loop : analysis.loops) {
    const Place place{loop.file, loop.line_begin, loop.function};
    const std::uint32_t lines = loop.line_end - std::min(loop.line_begin, loop.line_end);
    LoopEntry& entry = entries[{places == nullptr ? place : places->in_after(place), lines, loop.depth}];
    entry.place = place;
    entry.line_end = loop.line_end;
    LoopFigures& figures = entry.figures;
    const Figure share{loop.share, loop.share_ci95};
    figures.share = entry.copies == 0 ? share : sum_of(figures.share, share);
    figures.cpu_s = scaled(figures.share, analysis.cpu_s);
    figures.iteration_s = entry.copies == 0 ? iteration_time(loop) : Figure{};
    ++entry.copies;
  }
  return entries;
}

/// Judges by the time of an iteration if it is known: it does not depend on the amount of work.
Verdict judge(const LoopChange& loop, Unit unit) {
  if (!loop.change.iteration_s.ci95 && unit == Unit::share) {
    return Verdict::unknown;  // a share grows when others shrink
  }
  const int direction = direction_of(judged_change(loop, unit));
  return direction < 0 ? Verdict::better : direction > 0 ? Verdict::worse : Verdict::same;
}

LoopChange loop_change(const Sides& sides, const LoopEntry* before, const LoopEntry* after) {
  LoopChange loop;
  loop.matched = before == nullptr ? Matched::appeared : after == nullptr ? Matched::gone : Matched::both;
  loop.subject = (after != nullptr ? after : before)->place;
  loop.line_end = (after != nullptr ? after : before)->line_end;
  loop.was = before != nullptr ? before->place : Place{};
  loop.before = before != nullptr ? before->figures : LoopFigures{};
  loop.after = after != nullptr ? after->figures : LoopFigures{};
  loop.change.cpu_s = change_of(loop.before.cpu_s, loop.after.cpu_s, sides.run_to_run);
  loop.change.share = change_of(loop.before.share, loop.after.share, sides.run_to_run);
  loop.change.iteration_s = change_of(loop.before.iteration_s, loop.after.iteration_s, sides.run_to_run);
  // A loop that one profile lacks has an unknown change: the code may be different.
  loop.verdict = loop.matched == Matched::both ? judge(loop, sides.unit) : Verdict::unknown;
  return loop;
}

std::vector<LoopChange> loop_changes(const Sides& sides, const PlaceMap& places) {
  const auto before = loop_entries(sides.before, &places);
  const auto after = loop_entries(sides.after, nullptr);
  std::vector<LoopChange> loops;
  for (const auto& [key, entry] : before) {
    const auto found = after.find(key);
    loops.push_back(loop_change(sides, &entry, found == after.end() ? nullptr : &found->second));
  }
  for (const auto& [key, entry] : after) {
    if (!before.contains(key)) {
      loops.push_back(loop_change(sides, nullptr, &entry));
    }
  }
  const auto key = [&](const LoopChange& loop) {
    const double greatest = std::max(loop.before.share.value.value_or(0), loop.after.share.value.value_or(0));
    const bool told = loop.verdict == Verdict::better || loop.verdict == Verdict::worse;
    return std::tuple(!told, -greatest, loop.subject, loop.line_end);
  };
  std::stable_sort(loops.begin(), loops.end(),
                   [&](const LoopChange& a, const LoopChange& b) { return key(a) < key(b); });
  return loops;
}

}  // namespace

Comparison compare(const Analysis& before, const Analysis& after, const Options& options) {
  Comparison result;
  const UnitChoice choice = choose_unit(before, after, options.unit);
  result.unit = choice.unit;
  result.unit_reason = choice.reason;
  result.run_to_run = options.run_to_run;
  result.before_cpu_s = before.cpu_s;
  result.after_cpu_s = after.cpu_s;
  result.before_duration_s = before.duration_s;
  result.after_duration_s = after.duration_s;
  result.cpu_change = change_of(exactly(before.cpu_s), exactly(after.cpu_s), options.run_to_run);
  const Sides sides{before, after, choice.unit, options.run_to_run};
  // Sampled lines differ by chance. Within one build no code has moved, whatever they suggest.
  const bool unmoved = same_build(before, after);
  const PlaceMap places(unmoved ? CodeSeen{} : code_seen(before), unmoved ? CodeSeen{} : code_seen(after));
  result.total = total_of(sides);
  const Entries objects_before = object_entries(before, &places);
  const Entries objects_after = object_entries(after, nullptr);
  result.objects = rows_of(sides, pair_objects(objects_before, objects_after));
  const Entries lines_before = line_entries(before, &places);
  const Entries lines_after = line_entries(after, nullptr);
  result.lines = rows_of(sides, pair_by_key(lines_before, lines_after));
  const Entries threads_before = thread_entries(before);
  const Entries threads_after = thread_entries(after);
  result.threads = rows_of(sides, pair_by_key(threads_before, threads_after));
  result.loops = loop_changes(sides, places);
  result.warnings = differences(before, after);
  result.blind_before = blindness(before, "before");
  result.blind_after = blindness(after, "after");
  result.undetected_before = before.communication.undetected;
  result.undetected_after = after.communication.undetected;
  for (const std::string& blind : {result.blind_before, result.blind_after}) {
    if (!blind.empty()) {
      result.warnings.push_back({"watchpoints_blind", blind});
    }
  }
  result.in_common = have_in_common(before, after);
  result.times = time_rows(before, after);
  result.waits = wait_rows(before, after, result);
  result.statements = statements_of(result);
  return result;
}

}  // namespace crosstalk::attribution::comparison
