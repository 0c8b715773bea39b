// SPDX-License-Identifier: Apache-2.0
#include "driver/export/columns.h"

#include <algorithm>
#include <array>

#include "attribution/model/sentences.h"

namespace crosstalk::driver {

using attribution::Analysis;
using attribution::CallersFrom;
using attribution::CommunicationStack;
using attribution::TimeStack;
using attribution::WeightedStacks;

namespace {

bool is_unsampled(const WeightedStacks& stacks, const TimeStack& row) {
  return stacks.places[row.places.front()].frames.front().function == attribution::unsampled_function;
}

/// Sources of the callers, by share of the sampled time.
std::string callers_in_words(const WeightedStacks& stacks) {
  std::array<double, 3> weight{};
  for (const TimeStack& row : stacks.time) {
    if (!is_unsampled(stacks, row)) {
      weight.at(static_cast<std::size_t>(row.callers)) += static_cast<double>(row.weight);
    }
  }
  const double all = weight[0] + weight[1] + weight[2];
  if (!(all > 0)) {
    return {};
  }
  const auto share = [&](CallersFrom from) {
    return attribution::percent(weight.at(static_cast<std::size_t>(from)) / all);
  };
  return "callers (label 'callers'): 'sampled', by the stack of the sample itself, " + share(CallersFrom::sample) +
         " of the sampled time; 'alike', by those of other samples in the same function, " + share(CallersFrom::alike) +
         "; 'unknown', the innermost function alone, " + share(CallersFrom::unknown);
}

std::string unsampled_in_words(const WeightedStacks& stacks) {
  double ns = 0;
  for (const TimeStack& row : stacks.time) {
    ns += is_unsampled(stacks, row) ? static_cast<double>(row.weight) : 0;
  }
  return ns > 0 ? std::string(attribution::unsampled_function) + ": " + attribution::seconds_in_words(ns * 1e-9) +
                      " of CPU time that no sample stands for"
                : std::string();
}

std::string gain_in_words(const WeightedStacks& stacks) {
  const bool unknown = std::any_of(stacks.communication.begin(), stacks.communication.end(),
                                   [](const CommunicationStack& row) { return !row.gain_known; });
  return unknown
             ? "the gain is not known where the label 'gain' is 'unknown', and 0 there; crosstalk report has its bounds"
             : std::string();
}

}  // namespace

QuantityName time_quantity(const Analysis& analysis) {
  return analysis.shares_of.empty() ? QuantityName{"cpu", "nanoseconds"} : QuantityName{analysis.shares_of, "count"};
}

std::uint64_t sampling_period(const Analysis& analysis) {
  if (analysis.session.config.period_ns != 0) {
    return analysis.session.config.period_ns;
  }
  for (const attribution::SamplingSummary::Event& event : analysis.sampling.events) {
    if (analysis.shares_of.empty() ? event.unit == "ns" : event.name == analysis.shares_of) {
      return event.period;
    }
  }
  return 0;
}

bool has_communication(const WeightedStacks& stacks) { return !stacks.communication.empty(); }

bool has_gain(const WeightedStacks& stacks) {
  return std::any_of(stacks.communication.begin(), stacks.communication.end(),
                     [](const CommunicationStack& row) { return row.gain_known; });
}

std::string function_name(const attribution::StackPlace& place, const symbolizer::Frame& frame) {
  return place.in_kernel ? frame.function + "_[k]" : frame.function;
}

std::vector<std::string> export_comments(const Analysis& analysis) {
  std::vector<std::string> comments = {
      "recorded by crosstalk " + analysis.session.version + ": " + analysis.session.command,
      "source " + analysis.sampling.source + ", method " + analysis.sampling.method + ", estimator " +
          analysis.sampling.estimator,
      callers_in_words(*analysis.stacks), unsampled_in_words(*analysis.stacks), gain_in_words(*analysis.stacks)};
  for (const attribution::Warning& warning : analysis.warnings) {
    comments.push_back("warning: " + warning.message);
  }
  std::erase(comments, std::string());
  return comments;
}

}  // namespace crosstalk::driver
