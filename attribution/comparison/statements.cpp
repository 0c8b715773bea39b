// SPDX-License-Identifier: Apache-2.0
#include "attribution/comparison/statements.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "attribution/advice.h"
#include "attribution/comparison/wait_rows.h"
#include "attribution/model/sentences.h"
#include "attribution/program/program_view.h"

namespace crosstalk::attribution::comparison {
namespace {

constexpr double least_share_of_a_statement = 0.005;  // of CPU time, for a change to be worth a sentence
constexpr double least_of_loop = 0.05;
constexpr std::size_t most_statements = 4;  // of objects
constexpr std::size_t most_loops = 2;

double share(double s, double cpu_s) { return cpu_s > 0 ? s / cpu_s : 0; }

/// "1.26 s (98 % of the CPU time)", or only the share if shares are compared.
std::string amount(const Figure& cost, double cpu_s, Unit unit) {
  const double s = cost.value.value_or(0);
  const std::string part = percent(share(s, cpu_s));
  return unit == Unit::seconds ? seconds_in_words(s) + " (" + part + " of the CPU time)" : part + " of the CPU time";
}

/// An upper limit.
std::string limit(const Figure& cost, double cpu_s, Unit unit) {
  const double s = cost.ci95 ? cost.ci95->high : 0;
  return unit == Unit::seconds ? seconds_in_words(s) : percent(share(s, cpu_s)) + " of the CPU time";
}

/// "false sharing of `counters` at a.cpp:14", "communication through `requests` (a shared counter) at a.cpp:16".
std::string what(const Subject& subject) {
  const std::string name = "`" + subject.name + "`";
  const std::string at = source_name(subject.consumer_at.file, subject.consumer_at.line);
  const SharingKind kind = subject.sharing.value_or(SharingKind::true_sharing);
  const bool plain = kind == SharingKind::false_sharing || kind == SharingKind::true_sharing;
  return (plain ? noun_of(kind) + " of " + name : "communication through " + name + " (" + noun_of(kind) + ")") +
         (at.empty() ? "" : " at " + at);
}

bool is_seen(const Costs& costs) { return costs.seen > 0 || costs.cost.value.value_or(0) > 0; }

/// The change of a row: "took X before and takes Y now".
std::string became(const Row& row, const Comparison& c) {
  if (!is_seen(row.before)) {
    return "takes " + amount(row.after.cost, c.after_cpu_s, c.unit) + " now and was not seen before (at most " +
           limit(row.before.cost, c.before_cpu_s, c.unit) + ")";
  }
  const std::string took = "took " + amount(row.before.cost, c.before_cpu_s, c.unit) + " before";
  if (!is_seen(row.after)) {
    return took + " and was not seen again (at most " + limit(row.after.cost, c.after_cpu_s, c.unit) + ")";
  }
  return took + " and takes " + amount(row.after.cost, c.after_cpu_s, c.unit) + " now";
}

std::string cpu_times(const Comparison& c) {
  return seconds_in_words(c.before_cpu_s) + " -> " + seconds_in_words(c.after_cpu_s);
}

std::string changed_by(const Comparison& c) {
  const double by = c.before_cpu_s > 0 ? c.after_cpu_s / c.before_cpu_s - 1 : 0;
  // Percentages above 100 % are hard to read.
  if (by > 1) {
    char times[32];
    std::snprintf(times, sizeof times, by < 9 ? "%.2g times" : "%.0f times", by + 1);
    return std::string(times) + " the CPU time";
  }
  return percent(std::fabs(by)) + (by < 0 ? " less CPU time" : " more CPU time");
}

/// "; the program uses 69 % less CPU time (1.28 s -> 394 ms)". Empty if the runs do different work.
std::string of_cpu_time(const Comparison& c) {
  if (c.unit != Unit::seconds) {
    return "";
  }
  if (direction_of(c.cpu_change) == 0) {
    return "; the program's CPU time differs by no more than run-to-run noise (" + cpu_times(c) + ")";
  }
  return "; the program uses " + changed_by(c) + " (" + cpu_times(c) + ")";
}

bool is_told(Verdict verdict) { return verdict == Verdict::better || verdict == Verdict::worse; }

bool is_worth_saying(const Row& row, const Comparison& c) {
  return std::max(share(row.before.cost.value.value_or(0), c.before_cpu_s),
                  share(row.after.cost.value.value_or(0), c.after_cpu_s)) >= least_share_of_a_statement;
}

/// The beginning of a first sentence about less communication: the CPU time decides if it helped.
std::string lead(const Row& row, const Comparison& c, bool loops_faster) {
  if (row.verdict == Verdict::worse) {
    return "Worse: ";
  }
  if (c.unit == Unit::share || loops_faster) {
    return "Better: ";
  }
  const int direction = direction_of(c.cpu_change);
  return direction < 0   ? "Better: "
         : direction > 0 ? "Less communication, but more CPU time: "
                         : "Less communication: ";
}

std::string as_interval(const Figure& change, const Comparison& c) {
  if (!change.ci95) {
    return "";
  }
  const auto end = [&](double value) {
    const std::string size = c.unit == Unit::seconds ? seconds_in_words(std::fabs(value))
                                                     : std::to_string(std::lround(std::fabs(value) * 100)) + " points";
    return (value < 0 ? "-" : "+") + size;
  };
  return "; the change is somewhere in " + end(change.ci95->low) + " to " + end(change.ci95->high);
}

/// Describes all communication, if no row's change is certain.
std::string of_total(const Comparison& c) {
  const Row& total = c.total;
  if (!total.before.cost.known() || !total.after.cost.known()) {
    const bool both = !total.before.cost.known() && !total.after.cost.known();
    return std::string("what communication costs is not known ") + (both ? "of either profile"
                                                                    : !total.before.cost.known()
                                                                        ? "of the profile before"
                                                                        : "of the profile after");
  }
  if (!is_seen(total.before) && !is_seen(total.after)) {
    return "no communication was seen in either (at most " + limit(total.before.cost, c.before_cpu_s, c.unit) +
           " before and " + limit(total.after.cost, c.after_cpu_s, c.unit) + " now)";
  }
  const bool idle = total.verdict == Verdict::less || total.verdict == Verdict::more;
  return "communication " + became(total, c) +
         (idle ? ", of which next to nothing can be saved" : as_interval(judged_change(total, c.unit), c));
}

/// ", and undetected communication may cost up to X before and Y now", where it keeps a change from being told.
std::string undetected_of(const Comparison& c) {
  const auto& before_s = c.undetected_before.at_most_s;
  const auto& after_s = c.undetected_after.at_most_s;
  if (c.total.verdict != Verdict::unknown || direction_of(judged_change(c.total, c.unit)) == 0 || !before_s ||
      !after_s) {
    return "";
  }
  const auto text = [&](double s, double cpu_s) {
    return c.unit == Unit::seconds ? seconds_in_words(s) : percent(share(s, cpu_s)) + " of the CPU time";
  };
  return ", and undetected communication may cost up to " + text(*before_s, c.before_cpu_s) + " before and " +
         text(*after_s, c.after_cpu_s) + " now";
}

/// The first sentence if no object's change is certain.
Statement without_headline(const Comparison& c) {
  const int direction = c.unit == Unit::seconds ? direction_of(c.cpu_change) : 0;
  if (direction == 0) {
    const bool known = c.total.verdict != Verdict::unknown;
    return {
        (known ? "No measurable difference: " : "Not known: ") + of_total(c) + undetected_of(c) + of_cpu_time(c) + ".",
        known ? Verdict::same : Verdict::unknown};
  }
  return {begun(changed_by(c)) + " (" + cpu_times(c) +
              "), and no measurable difference in communication: " + of_total(c) + ".",
          direction < 0 ? Verdict::better : Verdict::worse};
}

bool is_loop_told(const LoopChange& loop) {
  return is_told(loop.verdict) && loop.change.iteration_s.ci95 &&
         std::max(loop.before.share.value.value_or(0), loop.after.share.value.value_or(0)) >= least_of_loop;
}

std::string iteration_text(double s) {
  constexpr double ms = 0.9995e-3;
  if (s >= ms) {
    return seconds_in_words(s);
  }
  char text[48];
  std::snprintf(text, sizeof text, s < 1e-6 ? "%.3g ns" : "%.3g us", s < 1e-6 ? s * 1e9 : s * 1e6);
  return text;
}

/// "Waits for locks fell from 3.2 s to 400 ms of thread time."
std::string of_waits(const WaitRow& row) {
  return begun(waits_in_words(row.what)) + (row.verdict == Verdict::better ? " fell" : " rose") + " from " +
         seconds_in_words(*row.before.value) + " to " + seconds_in_words(*row.after.value) +
         " of thread time, asleep or not.";
}

std::string of_loop(const LoopChange& loop) {
  return "An iteration of the loop in " + place_in_words(loop.subject.function, loop.subject.file, loop.subject.line) +
         " takes " + iteration_text(*loop.after.iteration_s.value) + " of CPU time now, " +
         iteration_text(*loop.before.iteration_s.value) + " before.";
}

}  // namespace

std::vector<Statement> statements_of(const Comparison& c) {
  std::vector<Statement> statements;
  const bool loops_faster = std::any_of(c.loops.begin(), c.loops.end(), [](const LoopChange& loop) {
    return is_loop_told(loop) && loop.verdict == Verdict::better;
  });
  for (const Row& row : c.objects) {
    if (!is_told(row.verdict) || !is_worth_saying(row, c) || statements.size() >= most_statements) {
      continue;
    }
    const bool first = statements.empty();
    const std::string begin = first                            ? lead(row, c, loops_faster)
                              : row.verdict == Verdict::better ? "Better: "
                                                               : "Worse: ";
    statements.push_back({begin + what(row.verdict == Verdict::better ? row.was : row.subject) + " " + became(row, c) +
                              (first ? of_cpu_time(c) : "") + ".",
                          row.verdict});
  }
  if (statements.empty() && is_told(c.total.verdict) && is_worth_saying(c.total, c)) {
    statements.push_back({lead(c.total, c, loops_faster) + "communication " + became(c.total, c) + of_cpu_time(c) + ".",
                          c.total.verdict});
  }
  if (statements.empty()) {
    statements.push_back(without_headline(c));
  }
  for (const WaitRow& row : c.waits) {
    if (is_told(row.verdict)) {
      statements.push_back({of_waits(row), row.verdict});
    }
  }
  std::size_t loops = 0;
  for (const LoopChange& loop : c.loops) {
    if (is_loop_told(loop) && loops < most_loops) {
      statements.push_back({of_loop(loop), loop.verdict});
      ++loops;
    }
  }
  return statements;
}

}  // namespace crosstalk::attribution::comparison
