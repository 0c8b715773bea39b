// SPDX-License-Identifier: Apache-2.0
#include "attribution/counts/line_lattice.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace crosstalk::attribution {
namespace {

constexpr double least_samples = 6;
constexpr std::uint64_t widest_gap = 16;              // times the usual one
constexpr double least_part = 0.75, most_part = 1.2;  // of the lines that even chances would have shown

using Entry = std::pair<std::uint64_t, std::uint64_t>;  // line, samples

std::uint64_t usual_gap(std::span<const Entry> entries) {
  std::vector<std::uint64_t> gaps;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    gaps.push_back(entries[i].first - entries[i - 1].first);
  }
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return *middle;
}

/// Two standard deviations of the range's length, as a part: exponential gaps at both ends, each with 1/n.
double range_error(double samples) { return 2 * std::sqrt(2.0) / samples; }

/// The number of lines from the first to the last one seen.
double reach_of(const LineCluster& cluster) {
  const std::uint64_t steps = cluster.distance != 0 ? (cluster.last - cluster.first) / cluster.distance : 0;
  return static_cast<double>(steps) + 1;
}

/// The mean distance of samples at one end of a range of entries, bytes: if some lines take less time than others,
/// samples are rarer there.
template <typename Iterator>
double end_gap(Iterator first, Iterator end) {
  constexpr double enough = 8;  // samples
  double samples = 0;
  double bytes = 0;
  for (Iterator at = first; at != end && samples < enough; ++at) {
    samples += static_cast<double>(at->second);
    bytes = std::abs(static_cast<double>(at->first) - static_cast<double>(first->first));
  }
  return bytes / std::max(1.0, samples - 1);
}

/// The greatest difference between the samples' and the lines' cumulative parts, in units of its chance value
/// (Kolmogorov and Smirnov). If some lines take less time than others, there may be more such lines beyond the last.
double unevenness(std::span<const Entry> entries, double samples) {
  const auto range = static_cast<double>(entries.back().first - entries.front().first);
  double below = 0;
  double most = 0;
  for (const auto& [line, count] : entries) {
    const double part = static_cast<double>(line - entries.front().first) / range;
    most = std::max(most, std::abs(below / samples - part));
    below += static_cast<double>(count);
    most = std::max(most, std::abs(below / samples - part));
  }
  return most * std::sqrt(samples);
}

LineCluster cluster_of(std::span<const Entry> entries) {
  LineCluster cluster{entries.front().first, entries.back().first, 0, 1, 0, true, 0};
  double samples = 0;
  for (const auto& [line, count] : entries) {
    cluster.distance = std::gcd(cluster.distance, line - cluster.first);
    samples += static_cast<double>(count);
  }
  cluster.samples = samples;
  cluster.even = samples >= least_samples;  // fewer may well have missed whole parts
  if (entries.size() == 1) {
    return cluster;
  }
  // The first and the last lines may not have been sampled: on average each end lacks as many lines as lie between two
  // samples there (the "German tank problem").
  const double seen = reach_of(cluster);
  const auto distinct = static_cast<double>(entries.size());
  const bool all = distinct == seen && samples > 3 * seen;
  const auto step = static_cast<double>(cluster.distance);
  const double before = end_gap(entries.begin(), entries.end()) / step;
  const double after = end_gap(entries.rbegin(), entries.rend()) / step;
  cluster.lines = all ? seen : std::floor(seen + std::max(0.0, before - 0.5) + std::max(0.0, after - 0.5));
  const double expected = cluster.lines * -std::expm1(-samples / cluster.lines);
  cluster.even =
      cluster.even && distinct >= least_part * expected && distinct <= std::max(most_part * expected, expected + 2);
  // A few lines may share a wider distance by chance.
  const double chance = std::exp2(1 - distinct);
  const double error = std::max(range_error(samples), 2 * std::hypot(before, after) / cluster.lines);
  cluster.error = all ? chance : error * std::max(1.0, unevenness(entries, samples)) + chance;
  return cluster;
}

/// True if samples of so many lines would reach no further than these in more than one of forty cases.
bool may_be(double lines, const LineCluster& cluster) {
  const double n = cluster.samples;
  const double part = std::min(1.0, reach_of(cluster) / lines);
  return n < 2 || n * std::pow(part, n - 1) - (n - 1) * std::pow(part, n) >= 0.025;
}

struct Length {
  double lines = 0, error = 0;  // as in LineCluster
};

/// The mean and the spread of a common length L of all sweeps, with a uniform prior. n points from a length L reach r
/// far with a likelihood in proportion to (L - r) / L^n.
Length common_length(std::span<LineCluster* const> clusters, double widest, double samples) {
  constexpr int parts = 2000;
  const double end = widest * (1 + 40 / samples);  // beyond, L is less likely by e^-40 and a few factors
  double weights = 0;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i <= parts; ++i) {
    const double length = widest + (end - widest) * i / parts;
    double log = -samples * std::log(length / widest);
    for (const LineCluster* cluster : clusters) {
      log += std::log((length - reach_of(*cluster) + 1) / widest);
    }
    const double weight = std::exp(log);
    weights += weight;
    sum += weight * length;
    squares += weight * length * length;
  }
  const double mean = sum / weights;
  const double spread = std::sqrt(std::max(0.0, squares / weights - mean * mean));
  return {std::round(mean), 2 * spread / mean};
}

}  // namespace

std::vector<LineCluster> line_clusters(const LineSamples& samples) {
  const std::vector<Entry> entries(samples.begin(), samples.end());
  std::vector<LineCluster> clusters;
  if (entries.empty()) {
    return clusters;
  }
  const std::uint64_t limit = entries.size() > 2 ? widest_gap * usual_gap(entries) : UINT64_MAX;
  std::size_t begin = 0;
  for (std::size_t i = 1; i <= entries.size(); ++i) {
    if (i == entries.size() || entries[i].first - entries[i - 1].first > limit) {
      clusters.push_back(cluster_of(std::span(entries).subspan(begin, i - begin)));
      begin = i;
    }
  }
  return clusters;
}

void share_length(std::span<LineCluster*> clusters) {
  double samples = 0;
  double lines = 0;
  double widest = 0;
  for (const LineCluster* cluster : clusters) {
    samples += cluster->samples;
    lines += cluster->samples * cluster->lines;
    widest = std::max(widest, reach_of(*cluster));
  }
  const double mean = std::round(lines / samples);
  // The error is that of the mean, from all clusters' samples.
  const double error = std::sqrt(static_cast<double>(clusters.size())) * range_error(samples);
  if (clusters.size() < 2 || widest > mean * (1 + error)) {
    return;
  }
  const Length common = common_length(clusters, widest, samples);
  const auto fits = [&](const LineCluster* cluster) { return may_be(common.lines, *cluster); };
  if (!std::all_of(clusters.begin(), clusters.end(), fits)) {
    return;
  }
  for (LineCluster* cluster : clusters) {
    const bool better =
        common.error < cluster->error && std::abs(cluster->lines - common.lines) <= 2 * cluster->error * common.lines;
    cluster->lines = better ? common.lines : cluster->lines;
    cluster->error = better ? common.error : cluster->error;
  }
}

}  // namespace crosstalk::attribution
