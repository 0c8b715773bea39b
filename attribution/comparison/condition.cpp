// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/condition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/number.h"

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

/// A word after "of", and the figures that it selects.
struct SelectionWord {
  std::string_view word;
  Selection costs;                    // everything: it has none
  std::optional<TimeRow::Kind> time;  // nothing: no CPU time is known by it
};
constexpr std::array<SelectionWord, 6> selections = {{{"object", Selection::object, std::nullopt},
                                                      {"line", Selection::line, TimeRow::Kind::line},
                                                      {"loop", Selection::everything, TimeRow::Kind::loop},
                                                      {"function", Selection::everything, TimeRow::Kind::function},
                                                      {"thread", Selection::everything, TimeRow::Kind::thread},
                                                      {"region", Selection::everything, TimeRow::Kind::region}}};

bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || c == '_'; }

/// Reads a condition from left to right. Each step skips spaces first.
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
  /// Nothing if it is empty, or its quote is not closed.
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
    const auto value = take_leading<double>(rest_);
    return value && std::isfinite(*value) ? value : std::nullopt;
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
  const bool any = reader.accept_word("any");
  const std::string_view word = reader.word();
  const auto* const kind =
      std::find_if(selections.begin(), selections.end(), [word](const auto& known) { return known.word == word; });
  if (kind == selections.end()) {
    return fail(ErrorCode::invalid_argument,
                "'of' is followed by 'object', 'line', 'loop', 'function', 'thread' or 'region' and a name, or by "
                "'any' and one of these");
  }
  const bool of_time = condition.metric == Metric::cpu_s;
  if (of_time ? !kind->time : kind->costs == Selection::everything) {
    return fail(ErrorCode::invalid_argument, of_time ? "an object has no cpu_s; choose cost_s, gain_s or count"
                                                     : "a " + std::string(word) + " has cpu_s, and no other figure");
  }
  condition.time_kind = kind->time.value_or(condition.time_kind);
  if (any) {
    condition.selection = of_time                            ? Selection::any_time
                          : kind->costs == Selection::object ? Selection::any_object
                                                             : Selection::any_line;
    return {};
  }
  condition.selection = of_time ? Selection::time : kind->costs;
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
    if (condition.metric == Metric::cpu_s && !condition.of_change && condition.selection == Selection::everything) {
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

}  // namespace crosstalk::attribution::comparison
