// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/tries.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/clock.h"

namespace crosstalk::collectors::calibration {
namespace {

constexpr double near_enough = 0.01;
constexpr std::size_t least_unspoilt = 5;  // a quarter of fewer is the best one by itself

/// The value that a quarter of the sorted ones do not exceed, beyond the best.
double quarter_best(const std::vector<double>& sorted) { return sorted[sorted.size() / 4]; }

double median_of(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

/// To six digits: more is noise to a reader of the file.
double rounded(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  double result = 0;
  return std::sscanf(text.data(), "%lf", &result) == 1 ? result : value;
}

std::string per_cent(double part) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.0f %%", 100 * part);
  return text.data();
}

std::string too_few(std::size_t tries) {
  return "nothing disturbed " + std::to_string(tries) + " of the tries, and " + std::to_string(least_unspoilt) +
         " are needed: the machine is too busy";
}

/// What counts of the tries, and how much of them is how far from it.
struct Chosen {
  double value, spread, most_spread;
  const char* words;  // "three quarters of the tries differ from the best"
};

models::Figure figure_of(const std::vector<double>& sorted, const Chosen& chosen, const std::string& method) {
  models::Figure figure;
  figure.method = method;
  figure.tries = static_cast<std::uint32_t>(sorted.size());
  figure.spread = rounded(chosen.spread);
  figure.median = rounded(median_of(sorted));
  if (chosen.spread > chosen.most_spread) {
    figure.refused = std::string(chosen.words) + " by " + per_cent(chosen.spread) + " or more: the machine is too busy";
  } else {
    figure.value = rounded(chosen.value);
  }
  return figure;
}

}  // namespace

std::vector<double> collect(const Effort& effort, const Try& one) {
  std::vector<double> sorted;
  for (unsigned made = 0; made < effort.most_tries; ++made) {
    if (monotonic_ns() > effort.deadline_ns) {
      break;
    }
    if (const auto seconds = one(); seconds && *seconds > 0 && std::isfinite(*seconds)) {
      sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), *seconds), *seconds);
    }
    if (sorted.size() >= effort.least_tries && quarter_best(sorted) <= sorted.front() * (1 + near_enough)) {
      break;
    }
  }
  return sorted;
}

models::Figure time_figure(std::vector<double> seconds, const std::string& method) {
  if (seconds.size() < least_unspoilt) {
    return refused(too_few(seconds.size()), method);
  }
  std::sort(seconds.begin(), seconds.end());
  const double best = seconds.front();
  return figure_of(
      seconds,
      {best, quarter_best(seconds) / best - 1, most_spread, "three quarters of the tries differ from the best"},
      method);
}

models::Figure rate_figure(std::vector<double> seconds, const std::string& method) {
  models::Figure figure = time_figure(std::move(seconds), method);
  if (figure.value) {
    figure.value = rounded(1 / *figure.value);
  }
  if (figure.tries > 0) {
    figure.median = rounded(1 / figure.median);
  }
  return figure;
}

models::Figure median_figure(std::vector<double> seconds, const std::string& method) {
  if (seconds.size() < least_unspoilt) {
    return refused(too_few(seconds.size()), method);
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = median_of(seconds);
  const double upper = seconds[seconds.size() - 1 - seconds.size() / 4];
  const double spread = std::max(upper / median - 1, 1 - quarter_best(seconds) / median);
  return figure_of(seconds, {median, spread, most_spread_of_median, "half of the tries differ from the median"},
                   method);
}

models::Figure refused(const std::string& reason, const std::string& method) {
  models::Figure figure;
  figure.method = method;
  figure.refused = reason;
  return figure;
}

double seconds_of(const std::function<void()>& work) {
  constexpr double ns_per_s = 1e9;
  const std::uint64_t begin = monotonic_ns();
  work();
  return static_cast<double>(monotonic_ns() - begin) / ns_per_s;
}

std::uint64_t rounds_for(const Effort& effort, const std::function<void(std::uint64_t)>& work) {
  constexpr std::uint64_t most = std::uint64_t{1} << 40;
  const double wanted_s = static_cast<double>(effort.try_ns) * 1e-9;
  std::uint64_t rounds = 1;
  double took_s = 0;
  while (rounds < most && took_s < wanted_s / 4) {
    rounds *= 2;
    // The better of two, so that an interruption does not make tries too short.
    took_s = std::min(seconds_of([&] { work(rounds); }), seconds_of([&] { work(rounds); }));
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(rounds) * wanted_s / took_s));
}

}  // namespace crosstalk::collectors::calibration
