// SPDX-License-Identifier: Apache-2.0
// Conditions of scripts on a comparison: "change(cost_s) of any object > 2 %".
//
//   condition = figure [ "of" selection ] comparator number [ unit ]
//   figure    = metric | "change(" metric ")"
//   metric    = "cost_s" | "gain_s" | "count" | "cpu_s"
//   selection = [ "any" ] ( "object" | "line" | "loop" | "function" | "thread" | "region" ), without "any" a name
//   name      = a word, or anything in quotes of either sort; "*" in it stands for any characters
//   comparator = ">" | ">=" | "<" | "<="
//   unit      = "%" | "s" | "ms" | "us" | "ns" (times; none: s) | "k" | "M" | "G" (counts)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attribution/comparison/comparison.h"
#include "base/result.h"

namespace crosstalk::attribution::comparison {

enum class Metric : std::uint8_t { cost_s, gain_s, count, cpu_s };
enum class Selection : std::uint8_t { everything, object, line, any_object, any_line, time, any_time };
enum class Comparator : std::uint8_t { greater, greater_or_equal, less, less_or_equal };

struct Condition {
  std::string text;  // as it was written
  Metric metric = Metric::cost_s;
  bool of_change = false;  // else of the profile after
  Selection selection = Selection::everything;
  std::string name;
  TimeRow::Kind time_kind = TimeRow::Kind::function;  // of Selection::time and any_time
  Comparator comparator = Comparator::greater;
  double threshold = 0;  // seconds, a number, or a part of 1
  bool is_part = false;  // "%": of CPU time; of changes of cpu_s and count: of what it was
};

[[nodiscard]] Result<Condition> parse_condition(std::string_view text);
/// Fails if no row of either profile can have the condition's name, and lists the existing names: a typing error must
/// not pass as a low figure. Succeeds for a condition without a name.
[[nodiscard]] Result<void> check_name(const Condition& condition, const Comparison& comparison);

/// The result of a condition. It holds if it holds for sure: ">" uses the lower end of the 95 % interval, "<" the upper
/// one. It is undecided if communication that nobody detected could change that.
struct Judgement {
  bool holds = false;
  bool judged = false;  // the figure is known well enough to say
  std::string of;       // the row of which it holds, of "any"; else empty
  std::string blind;    // undecided: why what was not detected could decide it; empty: that is not why it is not judged
  Figure figure;        // in the unit of the threshold
  std::optional<double> record_s = {};  // undecided: recordings of so long would decide it, as far as can be estimated
};
[[nodiscard]] Judgement judge(const Condition& condition, const Comparison& comparison);

/// True if `name` matches `pattern`.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view name);

}  // namespace crosstalk::attribution::comparison
