// SPDX-License-Identifier: Apache-2.0
#include "attribution/samples/brief_threads.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/units.h"

namespace crosstalk::attribution {
namespace {

constexpr double noticeable_share = 0.01;  // of all CPU time
constexpr double covered_share = 0.75;     // of it that samples stand for; they come by chance, so seldom for all

struct Times {
  double cpu_ns = 0, sampled_ns = 0, handlers_ns = 0, unsampled_ns = 0;
  std::size_t unsampled = 0, samples = 0;
};

Times times_of(std::span<const profile::ThreadRow> threads, std::span<const ThreadTotal> totals) {
  Times times;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const ThreadTotal total = i < totals.size() ? totals[i] : ThreadTotal{};
    const auto cpu_ns = static_cast<double>(threads[i].cpu_ns);
    times.cpu_ns += cpu_ns != 0 ? cpu_ns : total.ns;
    times.sampled_ns += total.ns;
    times.samples += total.samples;
    times.handlers_ns += static_cast<double>(threads[i].handlers_ns);
    if (total.samples == 0 && cpu_ns > 0) {
      ++times.unsampled;
      times.unsampled_ns += cpu_ns;
    }
  }
  return times;
}

/// "threads are made in spawn() at a.cpp:4 and in main() at b.cpp:9"; empty if there are too many.
std::string in_words(const char* begin, std::span<const std::string> places) {
  constexpr std::size_t few = 2;
  std::string text;
  for (std::size_t i = 0; i < places.size() && places.size() <= few; ++i) {
    text += (i == 0 ? begin : " and in ") + places[i];
  }
  return text;
}

/// The chance error of the sampled time: two standard deviations of the number of samples.
double by_chance_ns(const Times& times) {
  constexpr double deviations = 2;
  return times.samples == 0 ? 0 : deviations * times.sampled_ns / std::sqrt(static_cast<double>(times.samples));
}

double uncovered_ns(const Times& times) { return std::max(times.cpu_ns - times.sampled_ns - times.handlers_ns, 0.0); }

}  // namespace

bool has_unsampled_made_thread(std::span<const profile::ProcessRow> processes,
                               std::span<const profile::ThreadRow> threads) {
  return std::any_of(threads.begin(), threads.end(), [&](const profile::ThreadRow& thread) {
    return thread.samples == 0 && thread.cpu_ns > 0 && thread.process.value < processes.size() &&
           thread.tid != processes[thread.process.value].pid;
  });
}

double uncovered_s(std::span<const profile::ThreadRow> threads, std::span<const ThreadTotal> totals) {
  return uncovered_ns(times_of(threads, totals)) / ns_per_s;
}

std::optional<std::string> unsampled_in_words(std::span<const profile::ThreadRow> threads,
                                              std::span<const ThreadTotal> totals, std::span<const std::string> made_at,
                                              std::span<const std::string> began_in) {
  const Times times = times_of(threads, totals);
  if (times.unsampled == 0 || times.unsampled_ns < noticeable_share * times.cpu_ns) {
    return std::nullopt;
  }
  char head[96];
  std::snprintf(head, sizeof head, "%zu %s, %.2g s of CPU time: too short to be sampled", times.unsampled,
                times.unsampled == 1 ? "thread" : "threads", times.unsampled_ns / ns_per_s);
  const bool covered = uncovered_ns(times) < (1 - covered_share) * times.cpu_ns + by_chance_ns(times);
  const std::string began = in_words("they began in ", began_in);
  const std::string made = in_words("threads are made in ", made_at);
  const std::string about = began + (began.empty() || made.empty() ? "" : "; ") + made;
  return std::string(head) + (about.empty() ? "" : " (" + about + ")") + "; " +
         (covered ? std::string(times.unsampled == 1 ? "samples of others like it stand for it"
                                                     : "samples of others like them stand for them")
                  : std::string("no sample stands for ") + (times.unsampled == 1 ? "it" : "them") +
                        "; try --period 100us --budget 20");
}

}  // namespace crosstalk::attribution
