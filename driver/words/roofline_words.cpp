// SPDX-License-Identifier: Apache-2.0
#include "driver/words/roofline_words.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "attribution/model/sentences.h"

namespace crosstalk::driver {
namespace {

using attribution::RooflineLoop;
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

const Result<Estimate>& gain_of(const RooflineLoop& loop, RooflineModel model) {
  return model == RooflineModel::irm && loop.irm ? loop.irm->gain_bound : loop.carm.gain_bound;
}

/// The first advice only: each further one is less likely to help.
std::string advice_sentence(const std::vector<Advice>& advice) {
  return advice.empty() ? std::string() : attribution::begun(advice_in_words(advice.front())) + ".";
}

std::string carm_sentence(const RooflineLoop& loop) {
  const Verdict& verdict = loop.carm;
  if (!verdict.reached.empty()) {
    return "It is at the roof of " + any_of(verdict.reached) + ", as far as the figures tell.";
  }
  if (verdict.below && verdict.above) {
    return fmt::format("It is above the roof of {} and reaches {} of that of {}.", verdict.below->name,
                       percent(loop.performance.value() / verdict.above->height.value()), verdict.above->name);
  }
  if (verdict.above) {
    return fmt::format(
        "It reaches {} of the lowest roof, {}: latency, instructions that compute nothing, or waits hold "
        "it, which no roof shows.",
        percent(loop.performance.value() / verdict.above->height.value()), verdict.above->name);
  }
  return "It is above every roof: the calibration was disturbed, or its data are in registers.";
}

std::string irm_sentence(const RooflineLoop& loop) {
  if (!loop.irm) {
    return "Its traffic is not known: " + loop.irm.error().message + ".";
  }
  const auto& verdict = *loop.irm;
  if (!verdict.undecided.empty()) {
    return "Which level limits it is undecided: " + verdict.undecided + ".";
  }
  const std::string what = verdict.bottleneck
                               ? std::string(models::roofline::level_in_words(*verdict.bottleneck)) + "'s traffic"
                               : std::string("its operations");
  if (verdict.bound && models::roofline::surely_below(*verdict.bound, loop.performance)) {
    return fmt::format(
        "It exceeds what {} allows by the model, {}: fewer bytes move than it says, or the calibration was "
        "disturbed.",
        what, rate_in_words(verdict.bound->value(), "flop/s"));
  }
  return verdict.bound ? fmt::format("By {} it could reach {}; it reaches {} of that.", what,
                                     rate_in_words(verdict.bound->value(), "flop/s"),
                                     percent(loop.performance.value() / verdict.bound->value()))
                       : "It is limited by " + what + ".";
}

}  // namespace

const char* region_name(Region region) {
  static constexpr std::array<const char*, 4> names = {"memory", "mixed", "compute", "undecided"};
  return names[static_cast<std::size_t>(region)];
}

const char* advice_name(Advice advice) { return words_of(advice).name; }
std::string advice_in_words(Advice advice) { return words_of(advice).words; }

std::string bound_in_words(const RooflineLoop& loop, RooflineModel model) {
  if (model == RooflineModel::irm) {
    return !loop.irm || !loop.irm->undecided.empty() ? "undecided"
           : loop.irm->bottleneck                    ? models::roofline::level_in_words(*loop.irm->bottleneck)
                                                     : "FP units";
  }
  const Verdict& verdict = loop.carm;
  if (!verdict.reached.empty()) {
    return "at " + any_of(verdict.reached);
  }
  if (verdict.below && verdict.above) {
    return verdict.below->name + " to " + verdict.above->name;
  }
  return verdict.above ? "below " + verdict.above->name : "above all";
}

std::string gain_in_words(const RooflineLoop& loop, RooflineModel model) {
  const Result<Estimate>& gain = gain_of(loop, model);
  return !gain                ? "-"
         : gain->value() < 10 ? fmt::format("{:.2f} x", gain->value())
                              : fmt::format("{:.0f} x", gain->value());
}

std::string verdict_in_words(const RooflineLoop& loop, RooflineModel model) {
  const bool irm = model == RooflineModel::irm;
  const std::vector<Advice> none;
  const std::vector<Advice>& advice = irm ? (loop.irm ? loop.irm->advice : none) : loop.carm.advice;
  const std::string what = irm ? irm_sentence(loop) : carm_sentence(loop);
  const std::string remedy = advice_sentence(advice);
  return remedy.empty() ? what : what + " " + remedy;
}

std::string change_in_words(const RooflineLoop& before, const RooflineLoop& after) {
  const std::string was = rate_in_words(before.performance.value(), "flop/s");
  if (models::roofline::overlap(before.performance, after.performance)) {
    return "as fast as before, " + was + ", as far as the figures tell";
  }
  return fmt::format("{:.2f} times as fast as before, {}", after.performance.value() / before.performance.value(), was);
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

std::string intensity_in_words(double flops_per_byte) { return fmt::format("{:.3g}", flops_per_byte); }

}  // namespace crosstalk::driver
