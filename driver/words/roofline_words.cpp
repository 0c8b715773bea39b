// SPDX-License-Identifier: Apache-2.0
#include "driver/words/roofline_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "attribution/model/sentences.h"

namespace crosstalk::driver {
namespace {

using attribution::CountedOperations;
using attribution::RooflineLoop;
using attribution::RooflineModel;
using attribution::RooflinePlace;
using models::roofline::Advice;
using models::roofline::Estimate;
using models::roofline::Intersection;
using models::roofline::Region;
using models::roofline::Verdict;

struct AdviceWords {
  Advice which;
  const char* name;
  const char* words;
};
constexpr std::array<AdviceWords, 21> all_advice = {{
    {Advice::access_pattern, "access_pattern", "access data in order and whole lines at a time"},
    {Advice::locality, "locality", "reuse data while they are in a near cache (block the loop)"},
    {Advice::raise_intensity, "raise_intensity",
     "do more operations for each byte: fuse loops, keep values in registers"},
    {Advice::vectorise, "vectorise", "use vector instructions, or wider ones"},
    {Advice::thread, "thread", "share the work out to more threads"},
    {Advice::independent_operations, "independent_operations", "unroll with several accumulators"},
    {Advice::multiply_add, "multiply_add", "use fused multiply-adds"},
    {Advice::fewer_instructions, "fewer_instructions", "drop instructions that compute nothing"},
    {Advice::balance_load, "balance_load", "share the work out evenly between the threads"},
    {Advice::hide_latency, "hide_latency", "keep more independent accesses in flight"},
    {Advice::uncounted_instructions, "uncounted_instructions",
     "look at instructions that are no floating-point operations"},
    {Advice::unroll_and_pad, "unroll_and_pad", "unroll the streams and pad their arrays"},
    {Advice::affinity, "affinity", "keep data at the socket of the threads that use them"},
    {Advice::prefetch, "prefetch", "prefetch data"},
    {Advice::smaller_data, "smaller_data", "use smaller data"},
    {Advice::spread_traffic, "spread_traffic", "let more cores access memory at the same time"},
    {Advice::block_for_cache, "block_for_cache", "block the loop for the cache"},
    {Advice::pad_arrays, "pad_arrays", "pad the arrays"},
    {Advice::reorder_matrix, "reorder_matrix", "reorder rows and columns"},
    {Advice::reuse_vector, "reuse_vector", "reuse the gathered vector"},
    {Advice::served_nearer, "served_nearer", "its data come from a nearer level already"},
}};

const AdviceWords& words_of(Advice advice) { return all_advice[static_cast<std::size_t>(advice)]; }

std::string percent(double part) { return fmt::format("{:.0f} %", 100 * part); }

/// The names of roofs in a row: "L2", "L2 or L3".
std::string any_of(const std::vector<Intersection>& roofs) {
  std::string text;
  for (const Intersection& roof : roofs) {
    text += (text.empty() ? "" : " or ") + roof.name;
  }
  return text;
}

/// The first advice only: each further one is less likely to help.
std::string advice_sentence(const std::vector<Advice>& advice) {
  return advice.empty() ? std::string() : attribution::begun(advice_in_words(advice.front())) + ".";
}

const char* sort_of(const Intersection& roof) { return roof.ceiling ? "ceiling" : "roof"; }

/// Words for the roofs around a point. `reached`: the loop's value of the y axis.
std::string roofs_sentence(const Verdict& verdict, double reached) {
  if (!verdict.reached.empty()) {
    return fmt::format("It is at the {} of {}, as far as the figures tell.", sort_of(verdict.reached.front()),
                       any_of(verdict.reached));
  }
  if (verdict.below && verdict.above) {
    return fmt::format("It is above the {} of {} and reaches {} of that of {}.", sort_of(*verdict.below),
                       verdict.below->name, percent(reached / verdict.above->height.value()), verdict.above->name);
  }
  if (verdict.above) {
    return fmt::format(
        "It reaches {} of the lowest {}, {}: latency, instructions that compute nothing, or waits hold it, which no "
        "roof "
        "shows.",
        percent(reached / verdict.above->height.value()), sort_of(*verdict.above), verdict.above->name);
  }
  return "It is above every roof: the calibration was disturbed, or its data are in registers.";
}

bool above_all(const Verdict& verdict) { return verdict.reached.empty() && !verdict.above; }

std::string levels_sentence(const RooflinePlace& place, const char* unit) {
  const Estimate& rate = place.points.front().y;
  if (!place.verdict.undecided.empty()) {
    return "The limiting level is undecided: " + place.verdict.undecided + ".";
  }
  const std::string what = place.bottleneck
                               ? std::string(models::roofline::level_in_words(*place.bottleneck)) + "'s traffic"
                               : std::string("its operations");
  if (!place.bound) {
    return "It is limited by " + what + ".";
  }
  if (models::roofline::surely_below(*place.bound, rate)) {
    return fmt::format(
        "It exceeds what {} allows by the model, {}: fewer bytes move than it says, or the calibration was disturbed.",
        what, rate_in_words(place.bound->value(), unit));
  }
  return fmt::format("The model allows {} by {}; it reaches {} of that.", rate_in_words(place.bound->value(), unit),
                     what, percent(rate.value() / place.bound->value()));
}

std::string costs_sentence(const RooflinePlace& place) {
  using models::roofline::Feature;
  static constexpr std::array<const char*, 4> words = {"scalar instructions", "operations that are not fused",
                                                       "its chain of dependences", "all of these"};
  const auto folds = [](double cost) {
    return cost < 100 ? fmt::format("{:.2g}-fold", cost) : fmt::format("{:.0f}-fold", cost);
  };
  std::string text;
  for (const auto& cost : place.costs) {
    if (cost.cost.value() < 1.05 || cost.feature == Feature::all) {
      continue;
    }
    const bool issue = cost.feature == Feature::independent_operations && place.held_by_issue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        issue ? "the number of its instructions" : words[static_cast<std::size_t>(cost.feature)],
                        folds(cost.cost.value()));
  }
  if (text.empty()) {
    return "It uses vectors, multiply-adds and independent operations as far as is known.";
  }
  const auto& last = place.costs.back();
  return "Factors of the peak that it loses: " + text +
         (last.feature == Feature::all && last.cost.value() >= 1.05 && text.find(',') != std::string::npos
              ? "; all of these " + folds(last.cost.value()) + ", if they are independent."
              : std::string("."));
}

std::string gathers_sentence(const RooflinePlace& place) {
  if (!place.gathers) {
    return "";
  }
  const bool assumed = place.points.front().x.basis() == models::roofline::Basis::assumed;
  return fmt::format(
      " {} its intensity is {} if each gathered element brings a line of its own, and {} if they are in a cache.",
      assumed ? "The bytes that memory moves for it are not known; if all of its data come from there," : "By memory,",
      intensity_in_words(place.gathers->worst), intensity_in_words(place.gathers->best));
}

std::string band_sentence(const RooflinePlace& place) {
  if (!place.band) {
    return "";
  }
  static constexpr std::array<const char*, 4> where = {"below that range", "within that range", "above that range",
                                                       "at an edge of that range"};
  const auto& [band, verdict] = *place.band;
  const bool may_gain = verdict.position != models::roofline::BandPosition::above && verdict.gain_bound;
  return fmt::format(" Matrices in {} reach {} to {} by the order of their rows and columns; it is {}{}.",
                     models::roofline::level_in_words(band.level), rate_in_words(band.worst.value(), "flop/s"),
                     rate_in_words(band.best.value(), "flop/s"), where[static_cast<std::size_t>(verdict.position)],
                     may_gain ? fmt::format(", and the best order would make it {:.3g} times as fast at most",
                                            verdict.gain_bound->value())
                              : std::string());
}

std::string balance_sentence(const RooflineLoop& loop) {
  return loop.work.unbalanced()
             ? fmt::format(
                   "Only {:.2f} of its {} threads are at work at a time: even shares would make it up to {:.2f} "
                   "times as fast. ",
                   loop.work.at_work, loop.work.members, loop.work.at_most / loop.work.at_work)
             : std::string();
}

std::string bottleneck_sentence(const RooflineLoop& loop, RooflineModel model) {
  const RooflinePlace& place = *loop.place(model);
  const double reached = place.points.front().y.value();
  switch (model) {
    case RooflineModel::hierarchical:
    case RooflineModel::irm:
      return levels_sentence(place, axis_words(model, loop.work.ops).y_unit);
    case RooflineModel::runtime:
      return roofs_sentence(place.verdict, reached) + " " + costs_sentence(place);
    case RooflineModel::mansard:
      return fmt::format("It retires {:.2f} instructions a cycle, and takes {:.3g} s. ", reached, loop.work.own_s) +
             (above_all(place.verdict)
                  ? "It is above every hill: its mix of loads and stores is not the two loads and a "
                    "store that they were measured with."
                  : roofs_sentence(place.verdict, reached));
    default:
      return roofs_sentence(place.verdict, reached) + gathers_sentence(place) + band_sentence(place);
  }
}

std::string gain_sentence(const Verdict& verdict, RooflineModel model) {
  constexpr double worth = 1.05;
  if (!verdict.above || !verdict.gain_bound || verdict.gain_bound->value() <= worth) {
    return "";
  }
  const Intersection& above = *verdict.above;
  const double gain = verdict.gain_bound->value(), most = verdict.gain_bound->high();
  return model == RooflineModel::mansard
             ? fmt::format(" At the {} of {} it would retire {:.3g} times as many a cycle, at most {:.3g} times.",
                           sort_of(above), above.name, gain, most)
             : fmt::format(" At the {} of {} it would be {:.3g} times as fast, at most {:.3g} times.", sort_of(above),
                           above.name, gain, most);
}

/// The widest vectors that do most of a loop's operations; nullopt: it is scalar.
std::optional<models::Width> vectors_of(const RooflineLoop& loop) {
  if (loop.work.figures().packed.value_or(0) < 0.5) {
    return std::nullopt;
  }
  std::optional<models::Width> most;
  for (const models::Width width : {models::Width::sse, models::Width::avx2, models::Width::avx512}) {
    if (!most || loop.work.mix.of_width(width) > loop.work.mix.of_width(*most)) {
      most = width;
    }
  }
  return most;
}

/// The gain by vectorising; empty: the loop was no scalar one before, or still is one.
std::string vectorisation_in_words(const RooflineLoop& before, const RooflineLoop& after, const Estimate& was,
                                   const Estimate& now) {
  static constexpr std::array<const char*, 4> outcomes = {"in full", "in part", "nothing", "undecided how much"};
  const auto width = vectors_of(after);
  if (!width || vectors_of(before)) {
    return "";
  }
  const auto found = models::roofline::vectorisation(was, now, models::lanes(*width, after.work.precision));
  return found ? fmt::format("; its vectors won {}, {:.0f} % of what their width promises",
                             outcomes[static_cast<std::size_t>(found->outcome)],
                             100 * std::min(1.0, found->efficiency.value()))
               : std::string();
}

/// The speed-up of a reordered matrix as a product of balance and locality; empty for one thread.
std::string parts_in_words(const RooflineLoop& before, const RooflineLoop& after, const Estimate& was,
                           const Estimate& now) {
  if (before.work.members < 2 && after.work.members < 2) {
    return "";
  }
  const auto parts =
      models::roofline::speedup_parts(now.value() / was.value(), before.work.at_work, after.work.at_work);
  return parts ? fmt::format("; by balance {:.2f}, by locality {:.2f}", parts->balance, parts->locality)
               : std::string();
}

}  // namespace

const char* model_name(RooflineModel model) {
  static constexpr std::array<const char*, 7> names = {"carm",    "orm",    "hierarchical", "irm",
                                                       "runtime", "sparse", "mansard"};
  return names[static_cast<std::size_t>(model)];
}

const char* ops_name(CountedOperations ops) {
  static constexpr std::array<const char*, 4> names = {"float", "fp64", "fp32", "int"};
  return names[static_cast<std::size_t>(ops)];
}

const char* model_title(RooflineModel model) {
  static constexpr std::array<const char*, 7> titles = {
      "Cache-aware roofline", "Roofline of memory, with ceilings", "Hierarchical roofline",
      "Integrated roofline",  "Run-time-oriented roofline",        "Sparse roofline",
      "Mansard roofline"};
  return titles[static_cast<std::size_t>(model)];
}

const char* region_name(Region region) {
  static constexpr std::array<const char*, 4> names = {"memory", "mixed", "compute", "undecided"};
  return names[static_cast<std::size_t>(region)];
}

const char* advice_name(Advice advice) { return words_of(advice).name; }
std::string advice_in_words(Advice advice) { return words_of(advice).words; }

const char* feature_name(models::roofline::Feature feature) {
  static constexpr std::array<const char*, 4> names = {"vectors", "multiply_add", "independent_operations", "all"};
  return names[static_cast<std::size_t>(feature)];
}

const char* band_position_name(models::roofline::BandPosition position) {
  static constexpr std::array<const char*, 4> names = {"below", "inside", "above", "undecided"};
  return names[static_cast<std::size_t>(position)];
}

AxisWords axis_words(RooflineModel model, CountedOperations ops) {
  if (model == RooflineModel::mansard) {
    return {"other instructions for each memory instruction", "IPC"};
  }
  return ops == CountedOperations::integer ? AxisWords{"op/B", "op/s"} : AxisWords{"flop/B", "flop/s"};
}

std::string bound_in_words(const RooflineLoop& loop, RooflineModel model) {
  const RooflinePlace& place = *loop.place(model);
  if (model == RooflineModel::irm || model == RooflineModel::hierarchical) {
    return !place.verdict.undecided.empty() ? "undecided"
           : place.bottleneck               ? models::roofline::level_in_words(*place.bottleneck)
                                            : place.roofs.back().name;
  }
  const Verdict& verdict = place.verdict;
  if (!verdict.reached.empty()) {
    return "at " + any_of(verdict.reached);
  }
  if (verdict.below && verdict.above) {
    return verdict.below->name + " to " + verdict.above->name;
  }
  return verdict.above ? "below " + verdict.above->name : "above all";
}

std::string gain_in_words(const RooflineLoop& loop, RooflineModel model) {
  const Result<Estimate>& gain = loop.place(model)->verdict.gain_bound;
  return !gain                ? "-"
         : gain->value() < 10 ? fmt::format("{:.2f} x", gain->value())
                              : fmt::format("{:.0f} x", gain->value());
}

std::string verdict_in_words(const RooflineLoop& loop, RooflineModel model) {
  const Verdict& verdict = loop.place(model)->verdict;
  const std::string remedy = advice_sentence(verdict.advice);
  return balance_sentence(loop) + bottleneck_sentence(loop, model) + gain_sentence(verdict, model) +
         (remedy.empty() ? "" : " " + remedy);
}

std::string change_in_words(const RooflineLoop& before, const RooflineLoop& after, RooflineModel model) {
  const Estimate& was = before.place(model)->points.front().y;
  const Estimate& now = after.place(model)->points.front().y;
  const std::string words = height_in_words(was.value(), axis_words(model, before.work.ops).y_unit);
  if (model == RooflineModel::mansard) {
    return fmt::format(
        "at {:.2f} times the instructions a cycle of before, {}, and takes {:.3g} s in place of {:.3g} s{}",
        now.value() / was.value(), words, after.work.own_s, before.work.own_s,
        vectorisation_in_words(before, after, was, now));
  }
  const std::string parts = model == RooflineModel::sparse ? parts_in_words(before, after, was, now) : "";
  return models::roofline::overlap(was, now)
             ? "as fast as before, " + words + ", as far as the figures tell" + parts
             : fmt::format("{:.2f} times as fast as before, {}{}", now.value() / was.value(), words, parts);
}

std::string rate_in_words(double per_s, const char* unit) {
  static constexpr std::array<std::pair<double, const char*>, 5> prefixes = {
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};
  for (const auto& [factor, prefix] : prefixes) {
    if (per_s >= factor || factor == 1) {
      return fmt::format("{:.3g} {}{}", per_s / factor, prefix, unit);
    }
  }
  return {};
}

std::string height_in_words(double value, const char* unit) {
  return unit == std::string_view("IPC") ? fmt::format("{:.3g} IPC", value) : rate_in_words(value, unit);
}

std::string roof_in_words(const models::roofline::Roof& roof, CountedOperations ops) {
  switch (roof.kind) {
    case models::roofline::RoofKind::bandwidth:
      return rate_in_words(roof.height.value(), "B/s");
    case models::roofline::RoofKind::compute:
      return rate_in_words(roof.height.value(), ops == CountedOperations::integer ? "op/s" : "flop/s");
    case models::roofline::RoofKind::retirement:
      break;
  }
  return height_in_words(roof.height.value(), "IPC");
}

std::string intensity_in_words(double flops_per_byte) { return fmt::format("{:.3g}", flops_per_byte); }

}  // namespace crosstalk::driver
