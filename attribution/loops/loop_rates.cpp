// SPDX-License-Identifier: Apache-2.0
#include "attribution/loops/loop_rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <utility>

#include "attribution/loops/code_time.h"

namespace crosstalk::attribution {
namespace {

constexpr double nearly_all = 0.95;  // of steps, whose ends lie in a loop inside
constexpr const char* brief_visits = "its visits are too short for the time between two samples";
constexpr double same_way = 0.1;  // ways through an iteration may differ by this part

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
