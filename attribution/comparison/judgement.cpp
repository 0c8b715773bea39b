// SPDX-License-Identifier: Apache-2.0
// Judges conditions on a comparison.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "attribution/comparison/condition.h"
#include "attribution/model/sentences.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution::comparison {
namespace {

bool is_greater(Comparator comparator) {
  return comparator == Comparator::greater || comparator == Comparator::greater_or_equal;
}

bool compares(Comparator comparator, double value, double threshold) {
  switch (comparator) {
    case Comparator::greater:
      return value > threshold;
    case Comparator::greater_or_equal:
      return value >= threshold;
    case Comparator::less:
      return value < threshold;
    case Comparator::less_or_equal:
      break;
  }
  return value <= threshold;
}

const Figure& metric_of(const Costs& costs, Metric metric) {
  return metric == Metric::gain_s ? costs.gain : metric == Metric::count ? costs.count : costs.cost;
}

/// A figure before and after.
struct Pair {
  Figure before, after;
};

Pair of_cpu_time(const Comparison& c) { return {exactly(c.before_cpu_s), exactly(c.after_cpu_s)}; }
Pair of_row(const Row& row, Metric metric) { return {metric_of(row.before, metric), metric_of(row.after, metric)}; }

double part_of(double of) { return of > 0 ? 1 / of : 0; }

/// The figure in the unit of the threshold. A percentage refers to CPU time: to that after for a figure, and to the
/// difference of both shares for a change. For changes of cpu_s and count it refers to the figure before.
Figure figure_of(const Condition& condition, const Pair& pair, const Comparison& c) {
  const bool of_itself = (condition.metric == Metric::cpu_s && condition.selection == Selection::everything) ||
                         condition.metric == Metric::count;
  if (!condition.of_change) {
    return condition.is_part ? scaled(pair.after, part_of(c.after_cpu_s)) : pair.after;
  }
  if (!condition.is_part) {
    return change_of(pair.before, pair.after, c.run_to_run);
  }
  if (of_itself) {
    const double base = pair.before.value.value_or(0);
    return base > 0 ? scaled(change_of(pair.before, pair.after, c.run_to_run), 1 / base) : Figure{};
  }
  return change_of(scaled(pair.before, part_of(c.before_cpu_s)), scaled(pair.after, part_of(c.after_cpu_s)),
                   c.run_to_run);
}

Judgement judge_pair(const Condition& condition, const Pair& pair, const Comparison& c) {
  Judgement judgement;
  judgement.figure = figure_of(condition, pair, c);
  if (judgement.figure.ci95) {
    const double end = is_greater(condition.comparator) ? judgement.figure.ci95->low : judgement.figure.ci95->high;
    judgement.judged = true;
    judgement.holds = compares(condition.comparator, end, condition.threshold);
  }
  return judgement;
}

std::vector<std::string> names_of(const Condition& condition, const Row& row) {
  if (condition.selection == Selection::object || condition.selection == Selection::any_object) {
    return {row.subject.name, row.was.name};
  }
  std::vector<std::string> names;
  for (const Subject* subject : {&row.subject, &row.was}) {
    for (const Place* place : {&subject->consumer_at, &subject->producer_at}) {
      names.push_back(source_name(place->file, place->line));
    }
  }
  return names;
}

bool selects(const Condition& condition, const Row& row) {
  for (const std::string& name : names_of(condition, row)) {
    if (!name.empty() && matches(condition.name, name)) {
      return true;
    }
  }
  return false;
}

void add(std::optional<Figure>& sum, const Figure& figure) { sum = sum ? sum_of(*sum, figure) : figure; }

/// A judgement, and what watches saw of the rows that decided it.
struct Judged {
  Judgement judgement;
  bool found = true;  // such a row is in one of the profiles
  std::uint64_t seen_before = 0, seen_after = 0;
  bool lacks_before = false, lacks_after = false;  // that profile has none of them: the limit is in their interval
};

/// Judges the sum of the selected rows.
Judged judge_selected(const Condition& condition, const std::vector<Row>& rows, const Comparison& c) {
  std::optional<Figure> before;
  std::optional<Figure> after;
  const Row* any = nullptr;
  Judged result;
  for (const Row& row : rows) {
    if (!selects(condition, row)) {
      continue;
    }
    any = &row;
    result.seen_before += row.before.seen;
    result.seen_after += row.after.seen;
    const Pair pair = of_row(row, condition.metric);
    // The limit of unseen communication applies to a missing row, once for all rows.
    if (row.matched != Matched::appeared) {
      add(before, pair.before);
    }
    if (row.matched != Matched::gone) {
      add(after, pair.after);
    }
  }
  if (any == nullptr) {
    result.found = false;
    return result;
  }
  result.lacks_before = !before;
  result.lacks_after = !after;
  const Pair unseen = of_row(*any, condition.metric);
  result.judgement = judge_pair(condition, {before.value_or(unseen.before), after.value_or(unseen.after)}, c);
  return result;
}

std::string row_name(Selection selection, const Row& row) {
  if (selection == Selection::any_object) {
    return row.subject.name;
  }
  const Subject& s = row.subject;
  return source_name(s.producer_at.file, s.producer_at.line) + " -> " +
         source_name(s.consumer_at.file, s.consumer_at.line);
}

Judged judge_any(const Condition& condition, const std::vector<Row>& rows, const Comparison& c) {
  Judged result;
  result.judgement.judged = c.total.before.cost.value && c.total.after.cost.value;
  for (const Row& row : rows) {
    Judgement judgement = judge_pair(condition, of_row(row, condition.metric), c);
    if (judgement.holds) {
      judgement.of = row_name(condition.selection, row);
      return {judgement,
              true,
              row.before.seen,
              row.after.seen,
              row.matched == Matched::appeared,
              row.matched == Matched::gone};
    }
    result.judgement.judged = result.judgement.judged && judgement.judged;
  }
  return result;
}

bool selects(const Condition& condition, const TimeRow& row) {
  return row.kind == condition.time_kind &&
         (condition.selection == Selection::any_time || matches(condition.name, row.name));
}

/// Judges the sum of the selected rows.
Judgement judge_time(const Condition& condition, const Comparison& c) {
  std::optional<Figure> before;
  std::optional<Figure> after;
  for (const TimeRow& row : c.times) {
    if (selects(condition, row)) {
      add(before, row.before);
      add(after, row.after);
    }
  }
  return after ? judge_pair(condition, {*before, *after}, c) : Judgement{};
}

Judgement judge_any_time(const Condition& condition, const Comparison& c) {
  Judgement result;
  result.judged = true;
  for (const TimeRow& row : c.times) {
    if (!selects(condition, row)) {
      continue;
    }
    Judgement judgement = judge_pair(condition, {row.before, row.after}, c);
    if (judgement.holds) {
      judgement.of = row.name;
      return judgement;
    }
    result.judged = result.judged && judgement.judged;
  }
  return result;
}

/// The first few, without duplicates.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (!name.empty() && std::find(shown.begin(), shown.end(), name) == shown.end()) {
      shown.push_back(name);
      text += shown.size() <= most ? (shown.size() > 1 ? ", " : "") + name : "";
    }
  }
  return shown.empty() ? "there is none" : "there are: " + text + (shown.size() > most ? ", ..." : "");
}

Judgement undecided(Judgement judgement, std::string why) {
  judgement.judged = judgement.holds = false;
  judgement.of.clear();
  judgement.blind = std::move(why);
  return judgement;
}

/// Withdraws judgements that blind watchpoints could change. Known costs exist, but there may be more, now or before.
Judgement within_sight(const Condition& condition, Judgement judgement, const Comparison& comparison) {
  const bool certain = judgement.holds && is_greater(condition.comparator) && !condition.of_change;
  const std::string& why =
      condition.of_change && !comparison.blind_before.empty() ? comparison.blind_before : comparison.blind_after;
  return why.empty() || certain ? judgement : undecided(std::move(judgement), why);
}

/// One of the two profiles.
struct Side {
  const char* name;
  const Undetected& undetected;
  const std::string& blind;
  double cpu_s, duration_s;
  double sign;         // of its cost in a change
  std::uint64_t seen;  // of the rows that decide
  bool lacks;          // it has none of them
};

/// The most that went undetected, in the unit of the threshold.
std::optional<double> hidden(const Condition& condition, const Side& side) {
  const auto& at_most_s = side.undetected.at_most_s;
  return !at_most_s || !condition.is_part ? at_most_s
         : side.cpu_s > 0                 ? std::optional(*at_most_s / side.cpu_s)
                                          : std::nullopt;
}

/// True if the judgement would be another one with `more`, which may be hidden in the profile.
bool is_changed_by(const Condition& condition, const Judgement& judgement, const Side& side, double more) {
  const Figure& figure = judgement.figure;
  if (!judgement.judged) {
    return more > condition.threshold;
  }
  const auto& ci95 = figure.ci95;
  const double surely = !ci95 ? 0 : is_greater(condition.comparator) ? ci95->low : ci95->high;
  const double likely = figure.value ? *figure.value : ci95 ? (ci95->low + ci95->high) / 2 : 0;
  const double all = hidden(condition, side).value_or(0);
  const double far_end = !ci95 ? 0 : (side.sign > 0 ? ci95->high : ci95->low) - side.sign * (all - more);
  const double with_all = judgement.holds ? surely + (side.lacks ? 0 : side.sign * more)
                          : side.lacks    ? far_end
                                          : likely + side.sign * more;
  return compares(condition.comparator, with_all, condition.threshold) != judgement.holds;
}

/// True if the judgement would be another one with all that may be hidden in the profile. A row that watches saw has an
/// interval for what they missed of it, so the limit does not apply to it.
bool decides(const Condition& condition, const Judgement& judgement, const Side& side) {
  if (judgement.judged && side.seen > 0 && side.blind.empty()) {
    return false;
  }
  const std::optional<double> more = hidden(condition, side);
  return !more || is_changed_by(condition, judgement, side, *more);
}

/// How long both recordings would have to be for the limit to decide nothing: the part of it that is due to chance
/// shrinks, as a share of the CPU time, with the square root of the time at least. nullopt: that cannot be estimated.
std::optional<double> time_to_decide(const Condition& condition, const Judgement& judgement, const Side& side) {
  constexpr double most_s = 24 * 3600;
  const auto& by_chance_s = side.undetected.by_chance_s;
  if (!condition.is_part || !side.blind.empty() || !by_chance_s || !(side.cpu_s > 0) || !(side.duration_s > 0)) {
    return std::nullopt;  // an absolute limit grows with the time
  }
  const double rest = (*side.undetected.at_most_s - *by_chance_s) / side.cpu_s;
  const double chance = *by_chance_s / side.cpu_s;
  for (double times = 1.25; times * side.duration_s <= most_s; times *= 1.25) {
    if (!is_changed_by(condition, judgement, side, rest + chance / std::sqrt(times))) {
      return times * side.duration_s;
    }
  }
  return std::nullopt;
}

std::string why_undecided(const Side& side) {
  if (!side.blind.empty()) {
    return side.blind;
  }
  const Undetected& undetected = side.undetected;
  const std::string why = undetected.why.empty() ? "" : ": " + undetected.why;
  const std::string whose = std::string("undetected communication of the recording ") + side.name;
  if (!undetected.at_most_s) {
    return whose + " has no known limit" + why;
  }
  const std::string share =
      side.cpu_s > 0 ? " (" + percent(*undetected.at_most_s / side.cpu_s) + " of its CPU time)" : "";
  return whose + " costs up to " + seconds_in_words(*undetected.at_most_s) + share + why;
}

Judgement undecided(const Judgement& judgement, const Side& side, std::optional<double> record_s) {
  Judgement withdrawn = undecided(judgement, why_undecided(side));
  withdrawn.record_s = record_s;
  return withdrawn;
}

/// Withdraws judgements that undetected cost could change. It adds to the figure of the profile after, and takes away
/// from a change if it is of the profile before.
Judgement within_limit(const Condition& condition, const Judged& judged, const Comparison& c) {
  const Judgement& judgement = judged.judgement;
  const Side after{"after", c.undetected_after, c.blind_after,     c.after_cpu_s, c.after_duration_s,
                   1,       judged.seen_after,  judged.lacks_after};
  const Side before{"before", c.undetected_before, c.blind_before,     c.before_cpu_s, c.before_duration_s,
                    -1,       judged.seen_before,  judged.lacks_before};
  const bool more_matters = is_greater(condition.comparator) != judgement.holds;
  if ((more_matters || !judgement.judged) && decides(condition, judgement, after)) {
    return undecided(judgement, after, time_to_decide(condition, judgement, after));
  }
  if (condition.of_change && (!more_matters || !judgement.judged) && decides(condition, judgement, before)) {
    return undecided(judgement, before, time_to_decide(condition, judgement, before));
  }
  return judgement;
}

Judged judge_as_detected(const Condition& condition, const Comparison& comparison) {
  switch (condition.selection) {
    case Selection::any_object:
      return judge_any(condition, comparison.objects, comparison);
    case Selection::any_line:
      return judge_any(condition, comparison.lines, comparison);
    case Selection::object:
      return judge_selected(condition, comparison.objects, comparison);
    case Selection::line:
      return judge_selected(condition, comparison.lines, comparison);
    case Selection::time:
      return {judge_time(condition, comparison)};
    case Selection::any_time:
      return {judge_any_time(condition, comparison)};
    case Selection::everything:
      break;
  }
  const bool cpu = condition.metric == Metric::cpu_s;
  return {
      judge_pair(condition, cpu ? of_cpu_time(comparison) : of_row(comparison.total, condition.metric), comparison)};
}

}  // namespace

Result<void> check_name(const Condition& condition, const Comparison& comparison) {
  const bool of_rows = condition.selection == Selection::object || condition.selection == Selection::line;
  if (!of_rows && condition.selection != Selection::time) {
    return {};
  }
  std::vector<std::string> names;
  bool found = false;
  if (of_rows) {
    for (const Row& row : condition.selection == Selection::object ? comparison.objects : comparison.lines) {
      found = found || selects(condition, row);
      const std::vector<std::string> more = names_of(condition, row);
      names.insert(names.end(), more.begin(), more.end());
    }
  }
  if (condition.selection != Selection::object) {  // a line without communication is no slip of the finger
    for (const TimeRow& row : comparison.times) {
      if (row.kind == condition.time_kind) {
        found = found || matches(condition.name, row.name);
        names.push_back(row.name);
      }
    }
  }
  if (found) {
    return {};
  }
  return fail(ErrorCode::not_found,
              "'" + condition.text + "': neither profile has a '" + condition.name + "'; " + listed(names));
}

Judgement judge(const Condition& condition, const Comparison& comparison) {
  const Judged judged = judge_as_detected(condition, comparison);
  if (condition.metric == Metric::cpu_s) {
    return judged.judgement;
  }
  // The limit is one of cost. It says nothing of counts, or of a name that nobody has.
  const bool has_limit = condition.metric != Metric::count && judged.found;
  if (has_limit && judged.judgement.judged) {
    return within_limit(condition, judged, comparison);
  }
  const Judgement in_sight = within_sight(condition, judged.judgement, comparison);
  return has_limit && in_sight.blind.empty() ? within_limit(condition, judged, comparison) : in_sight;
}

bool matches(std::string_view pattern, std::string_view name) {
  std::size_t p = 0;
  std::size_t n = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

}  // namespace crosstalk::attribution::comparison
