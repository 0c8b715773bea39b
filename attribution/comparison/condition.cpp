// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/condition.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "attribution/objects/program_view.h"

namespace crosstalk::attribution::comparison {
namespace {

constexpr std::array<std::pair<std::string_view, Metric>, 4> metrics = {
    {{"cost_s", Metric::cost_s}, {"gain_s", Metric::gain_s}, {"count", Metric::count}, {"cpu_s", Metric::cpu_s}}};
constexpr std::array<std::pair<std::string_view, Comparator>, 4> comparators = {
    {{">=", Comparator::greater_or_equal},
     {"<=", Comparator::less_or_equal},
     {">", Comparator::greater},
     {"<", Comparator::less}}};  // longer ones first
constexpr std::array<std::pair<std::string_view, double>, 4> times = {
    {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}}};
constexpr std::array<std::pair<std::string_view, double>, 3> multiples = {{{"k", 1e3}, {"M", 1e6}, {"G", 1e9}}};

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

/// Reads a condition from its beginning to its end. Each step skips spaces first.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  /// Letters and underscores; empty: there are none.
  std::string_view word() {
    skip_spaces();
    std::size_t n = 0;
    while (n < rest_.size() && is_letter(rest_[n])) {
      ++n;
    }
    return take(n);
  }
  bool accept(std::string_view token) {
    skip_spaces();
    const bool there = rest_.starts_with(token);
    take(there ? token.size() : 0);
    return there;
  }
  bool accept_word(std::string_view token) {
    const std::string_view before = rest_;
    const bool there = word() == token;
    rest_ = there ? rest_ : before;
    return there;
  }
  /// Nothing: it is empty, or its quote is not closed.
  std::optional<std::string> name() {
    skip_spaces();
    if (!rest_.empty() && (rest_.front() == '"' || rest_.front() == '\'')) {
      const std::size_t end = rest_.find(rest_.front(), 1);
      if (end == std::string_view::npos || end == 1) {
        return std::nullopt;
      }
      std::string quoted(rest_.substr(1, end - 1));
      take(end + 1);
      return quoted;
    }
    std::size_t n = 0;
    while (n < rest_.size() && !is_space(rest_[n])) {
      ++n;
    }
    return n == 0 ? std::nullopt : std::optional(std::string(take(n)));
  }
  std::optional<double> number() {
    skip_spaces();
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc{} || !std::isfinite(value)) {
      return std::nullopt;
    }
    take(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  std::string_view remainder() {
    skip_spaces();
    while (!rest_.empty() && is_space(rest_.back())) {
      rest_.remove_suffix(1);
    }
    return take(rest_.size());
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && is_space(rest_.front())) {
      rest_.remove_prefix(1);
    }
  }
  std::string_view take(std::size_t n) {
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  std::string_view rest_;
};

Result<void> read_figure(Reader& reader, Condition& condition) {
  std::string_view word = reader.word();
  condition.of_change = word == "change";
  if (condition.of_change) {
    if (!reader.accept("(")) {
      return fail(ErrorCode::invalid_argument, "'change' is followed by a figure in parentheses, like change(cost_s)");
    }
    word = reader.word();
    if (!reader.accept(")")) {
      return fail(ErrorCode::invalid_argument, "a ')' is missing after 'change(" + std::string(word) + "'");
    }
  }
  for (const auto& [name, metric] : metrics) {
    if (word == name) {
      condition.metric = metric;
      return {};
    }
  }
  return fail(ErrorCode::invalid_argument,
              "'" + std::string(word) + "' is no figure; choose cost_s, gain_s, count or cpu_s, or change() of one");
}

Result<void> read_selection(Reader& reader, Condition& condition) {
  if (!reader.accept_word("of")) {
    return {};
  }
  if (condition.metric == Metric::cpu_s) {
    return fail(ErrorCode::invalid_argument, "cpu_s is of the whole program, not of an object or a line");
  }
  const bool any = reader.accept_word("any");
  const std::string_view word = reader.word();
  if (word != "object" && word != "line") {
    return fail(ErrorCode::invalid_argument,
                "'of' is followed by 'object NAME', 'line FILE:LINE', 'any object' or 'any line'");
  }
  const bool object = word == "object";
  if (any) {
    condition.selection = object ? Selection::any_object : Selection::any_line;
    return {};
  }
  condition.selection = object ? Selection::object : Selection::line;
  auto name = reader.name();
  if (!name) {
    return fail(ErrorCode::invalid_argument,
                "the name after '" + std::string(word) + "' is missing, or its quote is open");
  }
  condition.name = std::move(*name);
  return {};
}

Result<void> read_unit(std::string_view unit, Condition& condition) {
  if (unit == "%") {
    if (condition.metric == Metric::cpu_s && !condition.of_change) {
      return fail(ErrorCode::invalid_argument, "cpu_s is compared with seconds; change(cpu_s) with a percentage, too");
    }
    if (condition.metric == Metric::count && !condition.of_change) {
      return fail(ErrorCode::invalid_argument, "count is compared with a number; change(count) with a percentage, too");
    }
    condition.is_part = true;
    condition.threshold /= 100;
    return {};
  }
  if (unit.empty()) {
    return {};
  }
  if (condition.metric == Metric::count) {
    for (const auto& [name, factor] : multiples) {
      if (unit == name) {
        condition.threshold *= factor;
        return {};
      }
    }
    return fail(ErrorCode::invalid_argument,
                "'" + std::string(unit) + "' is no unit of a count; choose k, M or G, or none");
  }
  for (const auto& [name, factor] : times) {
    if (unit == name) {
      condition.threshold *= factor;
      return {};
    }
  }
  return fail(ErrorCode::invalid_argument, "'" + std::string(unit) + "' is no unit of time; choose s, ms, us, ns or %");
}

Result<void> read_threshold(Reader& reader, Condition& condition) {
  bool found = false;
  for (const auto& [sign, comparator] : comparators) {
    if (!found && reader.accept(sign)) {
      condition.comparator = comparator;
      found = true;
    }
  }
  if (!found) {
    return fail(ErrorCode::invalid_argument, "a comparison is missing: one of > >= < <=");
  }
  const auto number = reader.number();
  if (!number) {
    return fail(ErrorCode::invalid_argument, "a number is missing after the comparison");
  }
  condition.threshold = *number;
  return read_unit(reader.remainder(), condition);
}

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

/// Some figure before and after.
struct Pair {
  Figure before, after;
};

Pair of_cpu_time(const Comparison& c) { return {exactly(c.before_cpu_s), exactly(c.after_cpu_s)}; }
Pair of_row(const Row& row, Metric metric) { return {metric_of(row.before, metric), metric_of(row.after, metric)}; }

double part_of(double of) { return of > 0 ? 1 / of : 0; }

/// In the unit of the threshold. Percent are of CPU time: of that after for a figure, the difference of both shares for
/// a change; of the figure before for changes of cpu_s and count.
Figure figure_of(const Condition& condition, const Pair& pair, const Comparison& c) {
  const bool of_itself = condition.metric == Metric::cpu_s || condition.metric == Metric::count;
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

/// The rows that are named, together. Nothing: there is none.
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
    // What is not there is limited by what no watch saw, once for all rows.
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

/// Costs that are known are known to be there; whether there is more, and how much there was, is not known.
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
    case Selection::everything:
      break;
  }
  const bool cpu = condition.metric == Metric::cpu_s;
  return judge_pair(condition, cpu ? of_cpu_time(comparison) : of_row(comparison.total, condition.metric), comparison);
}

}  // namespace

Result<Condition> parse_condition(std::string_view text) {
  Condition condition;
  condition.text = std::string(text);
  Reader reader(text);
  for (const auto read : {read_figure, read_selection, read_threshold}) {
    if (auto done = read(reader, condition); !done) {
      return fail(ErrorCode::invalid_argument, "'" + condition.text + "': " + done.error().message);
    }
  }
  return condition;
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
