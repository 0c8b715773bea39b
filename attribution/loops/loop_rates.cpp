// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/loop_rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <utility>

#include "attribution/loops/code_time.h"
#include "models/quantiles.h"

namespace crosstalk::attribution {
namespace {

constexpr std::size_t least_steps = 4;     // for a figure
constexpr std::size_t least_to_judge = 8;  // for a verdict
constexpr double most_ended = 0.25;        // of steps, by the end of a visit
constexpr double nearly_all = 0.95;        // of steps, whose ends lie in a loop inside
constexpr const char* brief_visits = "its visits are too short for the time between two samples";
constexpr double same_way = 0.1;       // ways through an iteration may differ by this part
constexpr double least_unseen = 0.05;  // of a loop's time: begins and ends of visits always are

struct Line {
  double slope = 0, error = 0;  // error: standard error of the slope; infinite when nothing tells
};

/// The slope of iterations over small differences between intervals: least squares within groups of intervals of nearly
/// equal length. Leaves out intervals that differ from their group's length by more than 2 %, because they were
/// disturbed.
Line slope_within_groups(std::span<const LoopStep> steps, double typical_s) {
  struct Group {
    double n = 0, x = 0, y = 0;
  };
  constexpr double near = 0.02;
  const auto group_of = [&](const LoopStep& step) { return std::max(1L, std::lround(step.cpu_s / typical_s)); };
  const auto counts = [&](const LoopStep& step) {
    return step.same && std::abs(step.cpu_s / (static_cast<double>(group_of(step)) * typical_s) - 1) <= near;
  };
  std::map<long, Group> groups;
  for (const LoopStep& step : steps) {
    if (counts(step)) {
      Group& group = groups[group_of(step)];
      group.n += 1, group.x += step.cpu_s, group.y += step.iterations;
    }
  }
  double n = 0, xx = 0, xy = 0, yy = 0;
  for (const LoopStep& step : steps) {
    if (!counts(step)) {
      continue;
    }
    const Group& group = groups[group_of(step)];
    const double x = step.cpu_s - group.x / group.n;
    const double y = step.iterations - group.y / group.n;
    n += 1, xx += x * x, xy += x * y, yy += y * y;
  }
  const double degrees = n - static_cast<double>(groups.size()) - 1;
  constexpr double clock_s = 1e-7;  // two readings of a clock differ by so much for no reason
  if (degrees < 2 || xx <= n * clock_s * clock_s) {
    return {0, INFINITY};
  }
  const double slope = xy / xx;
  return {slope, std::sqrt(std::max(0.0, yy - slope * xy) / degrees / xx)};
}

std::vector<LoopStep> steps_of_one_visit(std::span<const LoopStep> steps) {
  std::vector<LoopStep> same;
  std::copy_if(steps.begin(), steps.end(), std::back_inserter(same), [](const LoopStep& s) { return s.same; });
  return same;
}

double median_interval(std::vector<LoopStep> steps) {
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::nth_element(steps.begin(), middle, steps.end(),
                   [](const LoopStep& a, const LoopStep& b) { return a.cpu_s < b.cpu_s; });
  return middle->cpu_s;
}

}  // namespace

Verdict judge(std::span<const LoopStep> steps) {
  const std::vector<LoopStep> same = steps_of_one_visit(steps);
  const auto all = static_cast<double>(steps.size());
  const double ended = all - static_cast<double>(same.size());
  if (steps.size() < least_to_judge) {
    return Verdict::too_few;
  }
  if (ended > most_ended * all) {
    return Verdict::too_short;
  }
  double cpu_s = 0;
  double iterations = 0;
  for (const LoopStep& step : same) {
    cpu_s += step.cpu_s, iterations += step.iterations;
  }
  if (cpu_s <= 0 || iterations <= 0) {
    return Verdict::too_short;
  }
  // Visits of length V that fit k times into an interval T look like progress of T - kV, and end in a part f = (T - kV)
  // / V of the intervals. Then the true rate is (k + f) / f >= (1 + f) / f times the found one.
  const double share = std::min((ended + 2) / all, most_ended);  // f, at most
  const double limit = 0.5 * (1 + share) / share * iterations / cpu_s;
  const Line line = slope_within_groups(same, median_interval(same));
  // The slope must be near the rate rather than near the limit, with an error that separates the two. If the clock
  // itself is disturbed, the slope falls towards zero, and is no evidence. But visits whose ends are as rare as for
  // `many` cannot keep to the clock that well.
  constexpr double many = 10;
  const double found = iterations / cpu_s;
  const bool undisturbed = line.slope + 4 * line.error > found / 2 || limit > many * found;
  const bool tells = 4 * line.error < limit - found && undisturbed;
  if (tells && line.slope + 2 * line.error < limit) {
    return Verdict::sound;
  }
  return line.slope - 2 * line.error > limit ? Verdict::too_short : Verdict::ambiguous;
}

namespace {

struct SeenVisit {
  double cpu_s = 0, iterations = 0, steps = 0, residual = 0;
  bool whole = false;  // iterations are rounded to whole ones
  // A visit is seen from its first sample to its last, on average a step less than its length. Without this weight,
  // slow visits, which last longer, would count too much.
  [[nodiscard]] double weight() const { return 1 + 1 / steps; }
};
using SeenVisits = std::unordered_map<std::uint32_t, SeenVisit>;

SeenVisits visits_of(std::span<const LoopStep> same) {
  SeenVisits visits;
  for (const LoopStep& step : same) {
    SeenVisit& visit = visits[step.visit];
    visit.cpu_s += step.cpu_s, visit.iterations += step.iterations, visit.steps += 1;
    visit.whole |= !step.with_parts;
  }
  return visits;
}

struct Spread {
  double variance = 0, units = 0;  // of the sum of residuals, and of how many units it was found
};

/// Residuals by step, or by visit if they are alike within one.
Spread spread_of(std::span<const LoopStep> same, double speed, SeenVisits& visits) {
  double by_step = 0;
  for (const LoopStep& step : same) {
    SeenVisit& visit = visits[step.visit];
    const double residual = visit.weight() * (step.iterations - speed * step.cpu_s);
    by_step += residual * residual;
    visit.residual += residual;
  }
  double by_visit = 0;
  for (const auto& [id, visit] : visits) {
    by_visit += visit.residual * visit.residual;
  }
  const auto n = static_cast<double>(same.size());
  const auto count = static_cast<double>(visits.size());
  by_step *= n / (n - 1);
  by_visit *= count / std::max(count - 1, 1.0);
  return visits.size() > least_steps && by_visit > by_step ? Spread{by_visit, count} : Spread{by_step, n};
}

}  // namespace

double part_in_callees(std::span<const LoopStep> steps) {
  const bool any = std::any_of(steps.begin(), steps.end(), [](const LoopStep& step) { return step.same; });
  double total_s = 0;
  double callees_s = 0;
  for (const LoopStep& step : steps) {
    if (step.same || !any) {
      total_s += step.cpu_s, callees_s += step.callees_s;
    }
  }
  return total_s > 0 ? std::clamp(callees_s / total_s, 0.0, 1.0) : 0;
}

std::optional<Speed> speed_of(std::span<const LoopStep> steps, double loop_cpu_s) {
  const std::vector<LoopStep> same = steps_of_one_visit(steps);
  SeenVisits visits = visits_of(same);
  double cpu_s = 0;
  double iterations = 0;
  for (const auto& [id, visit] : visits) {
    cpu_s += visit.weight() * visit.cpu_s, iterations += visit.weight() * visit.iterations;
  }
  if (same.size() < least_steps || cpu_s <= 0 || iterations <= 0) {
    return std::nullopt;
  }
  double seen_s = 0;
  for (const LoopStep& step : same) {
    seen_s += step.cpu_s - step.callees_s;
  }
  const double unseen = loop_cpu_s > 0 ? std::clamp(1 - seen_s / loop_cpu_s, least_unseen, 1.0) : 1.0;
  const double speed = iterations / cpu_s;
  const Spread spread = spread_of(same, speed, visits);
  // A counter stands at whole iterations: each end of a visit is off by at most half of one, evenly (variance 1/12).
  const auto rounded = std::count_if(visits.begin(), visits.end(), [](const auto& v) { return v.second.whole; });
  const double rounding = static_cast<double>(rounded) * 2 / 12;
  const double half = models::student_95(spread.units - 1) * std::sqrt(spread.variance * unseen + rounding) / cpu_s;
  return Speed{speed, {std::max(0.0, speed - half), speed + half}, same.size()};
}

namespace {

Rate unknown(std::string why) { return {std::nullopt, std::nullopt, std::move(why)}; }

/// Relative half-widths of independent 95 % intervals, combined.
double combined(double a, double b) { return std::sqrt(a * a + b * b); }
double half_width(const Interval& interval, double of) { return of > 0 ? (interval.high - interval.low) / 2 / of : 0; }

class Rates {
 public:
  Rates(std::vector<LoopRow>& loops, const std::map<LoopPlace, LoopTrail>& trails,
        const std::map<LoopPlace, LoopLookahead>& lookaheads, const ProgramView& view,
        const std::map<LoopPlace, CalledSpeed>& called)
      : loops_(loops), trails_(trails), lookaheads_(lookaheads), view_(view), called_(called) {
    for (LoopRow& loop : loops_) {
      by_id_[loop.id] = &loop;
    }
    for (LoopRow& loop : loops_) {
      if (loop.parent && by_id_.contains(*loop.parent)) {
        inside_[*loop.parent].push_back(&loop);
      }
    }
  }

  void fill() {
    for (const bool work : {false, true}) {
      std::vector<LoopRow*> order;
      for (LoopRow& loop : loops_) {
        order.push_back(&loop);
      }
      // Computes iterations from the outside in, and work from the inside out.
      std::stable_sort(order.begin(), order.end(), [work](const LoopRow* a, const LoopRow* b) {
        return work ? a->depth > b->depth : a->depth < b->depth;
      });
      for (LoopRow* loop : order) {
        work ? fill_work(*loop) : fill_iterations(*loop);
      }
    }
    for (LoopRow& loop : loops_) {
      if (!loop.rates.iterations.per_s) {
        fill_by_lookaheads(loop);
      }
    }
  }

 private:
  using Field = Rate LoopRates::*;
  static constexpr std::array<Field, symbolizer::work_kinds> fields = {
      &LoopRates::instructions, &LoopRates::loads, &LoopRates::stores, &LoopRates::bytes, &LoopRates::flops};

  [[nodiscard]] const LoopTrail* trail_of(const LoopRow& loop) const {
    const auto found = trails_.find({loop.module_file, loop.header});
    return found != trails_.end() ? &found->second : nullptr;
  }
  [[nodiscard]] LoopRow* around(const LoopRow& loop) const {
    const auto found = loop.parent ? by_id_.find(*loop.parent) : by_id_.end();
    return found != by_id_.end() && found->second->depth < loop.depth ? found->second : nullptr;
  }
  void fill_iterations(LoopRow& loop);
  [[nodiscard]] Rate iterations_by_counter(LoopRow& loop, const LoopTrail& trail);
  [[nodiscard]] Rate iterations_by_trips(LoopRow& loop, const LoopTrail& trail);
  [[nodiscard]] Rate iterations_by_calls(LoopRow& loop);
  [[nodiscard]] Rate iterations_by_lookaheads(LoopRow& loop);
  void fill_work(LoopRow& loop);
  void fill_by_lookaheads(LoopRow& loop);
  [[nodiscard]] Rate work_rate(const LoopRow& loop, const symbolizer::IterationWork& work, std::size_t kind) const;
  [[nodiscard]] Rate lookahead_rate(const LoopRow& loop, std::size_t kind, std::string by_code) const;
  [[nodiscard]] std::optional<Rate> part_inside(const LoopRow& loop, const LoopRow& inner) const;

  std::vector<LoopRow>& loops_;
  const std::map<LoopPlace, LoopTrail>& trails_;
  const std::map<LoopPlace, LoopLookahead>& lookaheads_;
  const ProgramView& view_;
  const std::map<LoopPlace, CalledSpeed>& called_;
  std::unordered_map<std::uint32_t, LoopRow*> by_id_;
  std::unordered_map<std::uint32_t, std::vector<LoopRow*>> inside_;
  std::unordered_map<std::uint32_t, bool> trusted_;  // by id: two moments in one visit can be told
};

/// The part of a loop's time in an inner loop, as a "rate" of seconds a second. nullopt if called functions take time,
/// which cannot be separated.
std::optional<Rate> Rates::part_inside(const LoopRow& loop, const LoopRow& inner) const {
  const LoopTrail* trail = trail_of(loop);
  constexpr double negligible = 0.005;
  if (trail == nullptr || part_in_callees(trail->steps) > negligible || !(loop.cpu_s > 0)) {
    return std::nullopt;
  }
  const double part = std::min(1.0, inner.cpu_s / loop.cpu_s);
  return Rate{part, share_interval(part, static_cast<double>(trail->samples)), ""};
}

/// The steps to judge if the surrounding loop cannot be trusted: its counter may have one value in two visits as well,
/// so anchored steps are no better than others. A visit has ended if it moved on.
std::vector<LoopStep> steps_without_anchor(const LoopTrail& trail) {
  std::vector<LoopStep> steps = trail.steps;
  steps.resize(steps.size() + trail.moved_on);  // not the same visit
  return steps;
}

/// Adds the parts of iterations that an inner loop gives, if nearly all of the loop's time is in it: rounding would
/// otherwise lose the few iterations between two samples. In other loops, time in the inner one is no part of an
/// iteration, so counts whole ones.
std::vector<LoopStep> finest(std::vector<LoopStep> steps) {
  const auto same = std::count_if(steps.begin(), steps.end(), [](const LoopStep& s) { return s.same; });
  const auto told =
      std::count_if(steps.begin(), steps.end(), [](const LoopStep& s) { return s.with_parts.has_value(); });
  const bool mostly = static_cast<double>(told) >= nearly_all * static_cast<double>(same);
  for (LoopStep& step : steps) {
    if (!mostly) {
      step.with_parts.reset();
    }
    step.iterations = step.with_parts.value_or(step.iterations);
  }
  return steps;
}

/// Fills in the rates of a loop's threads from the steps that its own rate rests on.
void fill_thread_rates(std::span<const LoopStep> steps, LoopRow& loop) {
  for (LoopThread& thread : loop.threads) {
    std::vector<LoopStep> own;
    std::copy_if(steps.begin(), steps.end(), std::back_inserter(own),
                 [&](const LoopStep& step) { return step.thread == thread.thread; });
    if (const auto speed = speed_of(own, thread.cpu_s)) {
      thread.iterations_per_s = speed->per_s;
      thread.iterations_ci95 = speed->ci95;
    }
  }
}

Rate Rates::iterations_by_counter(LoopRow& loop, const LoopTrail& trail) {
  if (!trail.counts) {
    return unknown("no integer register counts its iterations");
  }
  const LoopRow* outer = around(loop);
  std::vector<LoopStep> anchored;
  std::vector<LoopStep> loose;
  for (const LoopStep& step : trail.steps) {
    (step.anchored ? anchored : loose).push_back(step);
  }
  // If the counter of the loop around separates visits, no judgement is necessary. But steps within visits that are
  // hardly longer than a step favour the slower visits.
  const bool outer_trusted = outer != nullptr && trusted_[outer->id];
  const bool by_outer = outer_trusted && anchored.size() >= least_steps;
  if (!outer_trusted) {
    loose = steps_without_anchor(trail);
  }
  anchored = finest(std::move(anchored));
  loose = finest(std::move(loose));
  const bool brief = static_cast<double>(trail.moved_on) > most_ended * static_cast<double>(trail.steps.size());
  const Verdict verdict = brief ? Verdict::too_short : by_outer ? Verdict::sound : judge(loose);
  if (verdict == Verdict::sound) {
    trusted_[loop.id] = true;
    if (const auto speed = speed_of(by_outer ? anchored : loose, loop.cpu_s)) {
      loop.rates.steps = speed->steps;
      fill_thread_rates(by_outer ? anchored : loose, loop);
      return {speed->per_s, speed->ci95, ""};
    }
  }
  if (verdict == Verdict::too_short) {
    return unknown(brief_visits);
  }
  if (trail.unreadable > trail.steps.size()) {
    return unknown("its counter is not in a register where samples fell");
  }
  return unknown(verdict == Verdict::ambiguous ? "whether two samples fell into one visit cannot be told"
                                               : "too few samples");
}

/// The rates of the threads of a loop whose rate follows from the loop around it: as that one's rate in the thread,
/// with the thread's own part of its time in this loop.
void fill_thread_rates(const LoopRow& outer, const Rate& rate, LoopRow& loop) {
  for (LoopThread& thread : loop.threads) {
    const auto around = std::find_if(outer.threads.begin(), outer.threads.end(),
                                     [&](const LoopThread& other) { return other.thread == thread.thread; });
    if (around == outer.threads.end() || !around->iterations_per_s || !(thread.cpu_s > 0) || !(loop.cpu_s > 0)) {
      continue;
    }
    const double slower = (around->cpu_s / thread.cpu_s) / (outer.cpu_s / loop.cpu_s);  // less of its time is here
    const double per_s = *rate.per_s * slower * *around->iterations_per_s / *outer.rates.iterations.per_s;
    const double half = per_s * combined(half_width(*rate.ci95, *rate.per_s),
                                         half_width(*around->iterations_ci95, *around->iterations_per_s));
    thread.iterations_per_s = per_s;
    thread.iterations_ci95 = Interval{std::max(0.0, per_s - half), per_s + half};
  }
}

/// For a loop that is entered anew all the time: the iterations of the loop around times those that its entry gives.
Rate Rates::iterations_by_trips(LoopRow& loop, const LoopTrail& trail) {
  const LoopRow* outer = around(loop);
  if (outer == nullptr || trail.trips_read == 0) {
    return unknown("");
  }
  if (!outer->rates.iterations.per_s) {
    const std::string& own = loop.rates.iterations.unknown;
    return unknown(own == brief_visits ? own + "; of the loop around it, " + outer->rates.iterations.unknown : "");
  }
  if (trail.trips_least != trail.trips_most || !(trail.trips_most > 0)) {
    return unknown(std::string(brief_visits) + ", and differ in length");
  }
  const auto part = part_inside(*outer, loop);
  if (!part || !(*part->per_s > 0)) {
    return unknown(std::string(brief_visits) + ", and the loop around calls functions");
  }
  const Rate& visits = outer->rates.iterations;
  const double speed = *visits.per_s * trail.trips_most / *part->per_s;
  const double half = speed * combined(half_width(*visits.ci95, *visits.per_s), half_width(*part->ci95, *part->per_s));
  loop.rates.steps = outer->rates.steps;
  loop.rates.through_outer = true;
  Rate rate{speed, Interval{std::max(0.0, speed - half), speed + half}, ""};
  fill_thread_rates(*outer, rate, loop);
  return rate;
}

/// For a loop whose function is called repeatedly by one loop, which runs once for each call.
Rate Rates::iterations_by_calls(LoopRow& loop) {
  const auto found = called_.find({loop.module_file, loop.header});
  if (found == called_.end()) {
    return unknown("");
  }
  const auto& [speed, part, part_ci95, by_thread] = found->second;
  const double per_s = speed.per_s / part;
  const double half = per_s * combined(half_width(speed.ci95, speed.per_s), half_width(part_ci95, part));
  loop.rates.steps = speed.steps;
  loop.rates.through_outer = true;
  for (LoopThread& thread : loop.threads) {
    if (const auto own = by_thread.find(thread.thread); own != by_thread.end()) {
      const double of_thread = own->second.per_s / part;
      const double around =
          of_thread * combined(half_width(own->second.ci95, own->second.per_s), half_width(part_ci95, part));
      thread.iterations_per_s = of_thread;
      thread.iterations_ci95 = Interval{std::max(0.0, of_thread - around), of_thread + around};
    }
  }
  return {per_s, Interval{std::max(0.0, per_s - half), per_s + half}, ""};
}

/// For a loop that is entered anew all the time and goes round differently often, as the rows of a sparse matrix do:
/// the instructions that lookaheads count in an iteration of the loop around, without that loop's own, over those of
/// one iteration of this one.
Rate Rates::iterations_by_lookaheads(LoopRow& loop) {
  constexpr auto kind = static_cast<std::size_t>(symbolizer::WorkKind::instructions);
  const LoopRow* outer = around(loop);
  const auto found = outer != nullptr ? lookaheads_.find({outer->module_file, outer->header}) : lookaheads_.end();
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  const auto outer_code =
      outer != nullptr ? innermost_loop(view_.code(), {outer->module_file, outer->header}) : decltype(code)();
  if (found == lookaheads_.end() || !outer->rates.iterations.per_s || inside_[outer->id].size() != 1 || !code ||
      !outer_code) {
    return unknown("");
  }
  const LookaheadAmount amount = lookahead_amount(found->second, kind);
  const auto& own = code->anatomy->work(code->index).own.at(kind);
  const auto& of_outer = outer_code->anatomy->work(outer_code->index).own.at(kind);
  const auto part = part_inside(*outer, loop);
  if (!amount.mean || !own || !of_outer || !part || !(*part->per_s > 0) || !(own->least > 0) ||
      own->most - own->least > same_way * own->most) {
    return unknown("");
  }
  const double inside = *amount.mean - (of_outer->least + of_outer->most) / 2;
  const double trips = inside / ((own->least + own->most) / 2);
  if (!(trips > 0)) {
    return unknown("");
  }
  const Rate& visits = outer->rates.iterations;
  const double speed = *visits.per_s * trips / *part->per_s;
  const double of_amount = ((amount.ci95.high - amount.ci95.low) + (of_outer->most - of_outer->least)) / 2 / inside;
  const double half = speed * combined(combined(half_width(*visits.ci95, *visits.per_s), of_amount),
                                       half_width(*part->ci95, *part->per_s));
  loop.rates.steps = outer->rates.steps;
  loop.rates.through_outer = true;
  Rate rate{speed, Interval{std::max(0.0, speed - half), speed + half}, ""};
  fill_thread_rates(*outer, rate, loop);
  return rate;
}

void Rates::fill_by_lookaheads(LoopRow& loop) {
  if (Rate rate = iterations_by_lookaheads(loop); rate.per_s) {
    loop.rates.iterations = std::move(rate);
    fill_work(loop);
  }
}

void Rates::fill_iterations(LoopRow& loop) {
  const LoopTrail* trail = trail_of(loop);
  if (trail == nullptr) {
    loop.rates.iterations = unknown("its samples have no registers");
    return;
  }
  loop.rates.in_callees = part_in_callees(trail->steps);
  loop.rates.iterations = iterations_by_counter(loop, *trail);
  if (!loop.rates.iterations.per_s) {
    Rate other = iterations_by_calls(loop);
    if (!other.per_s) {
      other = iterations_by_trips(loop, *trail);
    }
    if (other.per_s || !other.unknown.empty()) {
      loop.rates.iterations = std::move(other);
    }
  }
}

Rate Rates::work_rate(const LoopRow& loop, const symbolizer::IterationWork& work, std::size_t kind) const {
  const Rate& iterations = loop.rates.iterations;
  const auto& own = work.own.at(kind);
  if (!own) {
    return unknown("an instruction's amount depends on its data");
  }
  if (own->most - own->least > same_way * own->most) {
    return unknown("its iterations take different ways");
  }
  const double each = (own->least + own->most) / 2;
  double total = *iterations.per_s * each;
  Interval interval{iterations.ci95->low * own->least, iterations.ci95->high * own->most};
  const auto inside = inside_.find(loop.id);
  for (const LoopRow* inner : inside != inside_.end() ? inside->second : std::vector<LoopRow*>{}) {
    const Rate& rate = inner->rates.*fields.at(kind);
    if (!rate.per_s) {
      return unknown("of a loop inside it: " + rate.unknown);
    }
    const auto part = part_inside(loop, *inner);
    if (!part) {
      return unknown("it calls functions");
    }
    total += *rate.per_s * *part->per_s;
    interval.low += rate.ci95->low * part->ci95->low;
    interval.high += rate.ci95->high * part->ci95->high;
  }
  return {total, interval, ""};
}

/// `by_code`: the reason why the code alone does not tell.
Rate Rates::lookahead_rate(const LoopRow& loop, std::size_t kind, std::string by_code) const {
  const auto found = lookaheads_.find({loop.module_file, loop.header});
  if (found == lookaheads_.end()) {
    return unknown(std::move(by_code));
  }
  const LookaheadAmount amount = lookahead_amount(found->second, kind);
  if (!amount.mean) {
    return unknown(amount.unknown == by_code ? std::move(by_code) : by_code + ", and " + amount.unknown);
  }
  const Rate& iterations = loop.rates.iterations;
  const double total = *iterations.per_s * *amount.mean;
  const double half =
      total * combined(half_width(*iterations.ci95, *iterations.per_s), half_width(amount.ci95, *amount.mean));
  return {total, Interval{std::max(0.0, total - half), total + half}, "", amount.lookaheads};
}

void Rates::fill_work(LoopRow& loop) {
  LoopRates& rates = loop.rates;
  const auto code = innermost_loop(view_.code(), {loop.module_file, loop.header});
  std::string why = !rates.iterations.per_s ? rates.iterations.unknown
                    : !code                 ? "its code is not known"
                                            : code->anatomy->work(code->index).unknown;
  for (std::size_t kind = 0; kind < symbolizer::work_kinds; ++kind) {
    Rate rate = why.empty() ? work_rate(loop, code->anatomy->work(code->index), kind) : unknown(why);
    if (!rate.per_s && rates.iterations.per_s) {
      rate = lookahead_rate(loop, kind, std::move(rate.unknown));
    }
    rates.*fields.at(kind) = std::move(rate);
  }
}

}  // namespace

void add_rates(std::vector<LoopRow>& loops, const std::map<LoopPlace, LoopTrail>& trails,
               const std::map<LoopPlace, LoopLookahead>& lookaheads, const ProgramView& view,
               const std::map<LoopPlace, CalledSpeed>& called) {
  Rates(loops, trails, lookaheads, view, called).fill();
}

}  // namespace crosstalk::attribution
