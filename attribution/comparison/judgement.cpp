// SPDX-License-Identifier: Apache-2.0
// Judges conditions on a comparison.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "attribution/comparison/condition.h"
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

/// The sum of the selected rows. Nothing: there is none.
std::optional<Pair> selected(const Condition& condition, const std::vector<Row>& rows) {
  std::optional<Figure> before;
  std::optional<Figure> after;
  const Row* any = nullptr;
  for (const Row& row : rows) {
    if (!selects(condition, row)) {
      continue;
    }
    any = &row;
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
    return std::nullopt;
  }
  const Pair unseen = of_row(*any, condition.metric);
  return Pair{before.value_or(unseen.before), after.value_or(unseen.after)};
}

std::string row_name(Selection selection, const Row& row) {
  if (selection == Selection::any_object) {
    return row.subject.name;
  }
  const Subject& s = row.subject;
  return source_name(s.producer_at.file, s.producer_at.line) + " -> " +
         source_name(s.consumer_at.file, s.consumer_at.line);
}

Judgement judge_any(const Condition& condition, const std::vector<Row>& rows, const Comparison& c) {
  Judgement result;
  result.judged = c.total.verdict != Verdict::unknown;
  for (const Row& row : rows) {
    Judgement judgement = judge_pair(condition, of_row(row, condition.metric), c);
    if (judgement.holds) {
      judgement.of = row_name(condition.selection, row);
      return judgement;
    }
    result.judged = result.judged && judgement.judged;
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

/// Withdraws judgements that blind watchpoints could change. Known costs exist, but there may be more, now or before.
Judgement within_sight(const Condition& condition, Judgement judgement, const Comparison& comparison) {
  const bool certain = judgement.holds && is_greater(condition.comparator) && !condition.of_change;
  const std::string& why =
      condition.of_change && !comparison.blind_before.empty() ? comparison.blind_before : comparison.blind_after;
  if (why.empty() || condition.metric == Metric::cpu_s || certain) {
    return judgement;
  }
  judgement.judged = judgement.holds = false;
  judgement.of.clear();
  judgement.blind = why;
  return judgement;
}

Judgement judge_as_seen(const Condition& condition, const Comparison& comparison) {
  switch (condition.selection) {
    case Selection::any_object:
      return judge_any(condition, comparison.objects, comparison);
    case Selection::any_line:
      return judge_any(condition, comparison.lines, comparison);
    case Selection::object:
    case Selection::line: {
      const auto pair =
          selected(condition, condition.selection == Selection::object ? comparison.objects : comparison.lines);
      return pair ? judge_pair(condition, *pair, comparison) : Judgement{};
    }
    case Selection::time:
      return judge_time(condition, comparison);
    case Selection::any_time:
      return judge_any_time(condition, comparison);
    case Selection::everything:
      break;
  }
  const bool cpu = condition.metric == Metric::cpu_s;
  return judge_pair(condition, cpu ? of_cpu_time(comparison) : of_row(comparison.total, condition.metric), comparison);
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
  return within_sight(condition, judge_as_seen(condition, comparison), comparison);
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
