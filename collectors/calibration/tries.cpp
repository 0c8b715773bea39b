// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/tries.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/units.h"

namespace crosstalk::collectors::calibration {
namespace {

constexpr double near_enough = 0.01;

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

std::string too_few(const Tries& tries) {
  if (tries.made() == 0) {
    return "no time was left: the machine is too busy";
  }
  return std::to_string(tries.counting().size()) + " of " + std::to_string(tries.made()) +
         (tries.made() == 1 ? " try" : " tries") + " told something" +
         (tries.out_of_time ? " in the time that the figure has" : "") + ", and " + std::to_string(enough_tries) +
         " are needed: the machine is too busy";
}

std::string too_far(const char* words, double spread, const Tries& tries) {
  return std::string(words) + " by " + per_cent(spread) + " or more" +
         (tries.quiet.size() < enough_tries ? ", and nearly all were disturbed" : "") + ": the machine is too busy";
}

void insert(std::vector<double>& sorted, double seconds) {
  sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), seconds), seconds);
}

/// The value of the tries, and the distance from it that a part of them exceeds.
struct Chosen {
  double value, spread, most_spread;
  const char* words;  // "three quarters of the tries differ from the best"
};

models::Figure figure_of(const Tries& tries, const std::vector<double>& sorted, const Chosen& chosen,
                         const std::string& method) {
  models::Figure figure;
  figure.method = method;
  figure.tries = static_cast<std::uint32_t>(tries.quiet.size() + tries.disturbed.size());
  figure.disturbed = static_cast<std::uint32_t>(tries.disturbed.size());
  figure.spread = rounded(chosen.spread);
  figure.median = rounded(median_of(sorted));
  if (chosen.spread > chosen.most_spread) {
    figure.refused = too_far(chosen.words, chosen.spread, tries);
  } else {
    figure.value = rounded(chosen.value);
  }
  return figure;
}

/// Returns the CPU time of a call, which others on the processor do not add to; elapsed time if that clock stands
/// still.
double cpu_seconds_of(const std::function<void()>& work) {
  constexpr double least_part = 1.0 / 16;
  const std::uint64_t begin = thread_cpu_ns();
  const double elapsed_s = seconds_of(work);
  const double cpu_s = static_cast<double>(thread_cpu_ns() - begin) / ns_per_s;
  return cpu_s > least_part * elapsed_s ? std::min(cpu_s, elapsed_s) : elapsed_s;
}

}  // namespace

std::vector<double> Tries::counting() const {
  if (quiet.size() >= enough_tries) {
    return quiet;
  }
  std::vector<double> all = quiet;
  all.insert(all.end(), disturbed.begin(), disturbed.end());
  std::sort(all.begin(), all.end());
  return all;
}

Tries collect(const Effort& effort, const Try& one) {
  constexpr std::size_t most_repeats = 10;  // of each
  Tries tries;
  while (tries.quiet.size() < effort.most_tries && tries.made() < most_repeats * effort.most_tries) {
    if (monotonic_ns() > effort.deadline_ns) {
      tries.out_of_time = true;
      break;
    }
    if (const auto made = one(); made && made->seconds > 0 && std::isfinite(made->seconds)) {
      insert(made->disturbed ? tries.disturbed : tries.quiet, made->seconds);
    } else {
      ++tries.spoilt;
    }
    if (tries.quiet.size() >= effort.least_tries &&
        quarter_best(tries.quiet) <= tries.quiet.front() * (1 + near_enough)) {
      break;
    }
  }
  return tries;
}

models::Figure time_figure(const Tries& tries, const std::string& method) {
  const std::vector<double> seconds = tries.counting();
  if (seconds.size() < enough_tries) {
    return refused(too_few(tries), method);
  }
  const double best = seconds.front();
  return figure_of(
      tries, seconds,
      {best, quarter_best(seconds) / best - 1, most_spread, "three quarters of the tries differ from the best"},
      method);
}

models::Figure rate_figure(const Tries& tries, const std::string& method) {
  models::Figure figure = time_figure(tries, method);
  if (figure.value) {
    figure.value = rounded(1 / *figure.value);
  }
  if (figure.tries > 0) {
    figure.median = rounded(1 / figure.median);
  }
  return figure;
}

models::Figure median_figure(const Tries& tries, const std::string& method) {
  const std::vector<double> seconds = tries.counting();
  if (seconds.size() < enough_tries) {
    return refused(too_few(tries), method);
  }
  const double median = median_of(seconds);
  const double upper = seconds[seconds.size() - 1 - seconds.size() / 4];
  const double spread = std::max(upper / median - 1, 1 - quarter_best(seconds) / median);
  return figure_of(tries, seconds, {median, spread, most_spread_of_median, "half of the tries differ from the median"},
                   method);
}

models::Figure refused(const std::string& reason, const std::string& method) {
  models::Figure figure;
  figure.method = method;
  figure.refused = reason;
  return figure;
}

double seconds_of(const std::function<void()>& work) {
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
    took_s = std::min(cpu_seconds_of([&] { work(rounds); }), cpu_seconds_of([&] { work(rounds); }));
  }
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(rounds) * wanted_s / took_s));
}

}  // namespace crosstalk::collectors::calibration
