// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/published.h"

#include <algorithm>
#include <array>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

namespace crosstalk::simulation {
namespace {

constexpr double transfer_ns = 200;  // as the other scenarios of sources that count

/// A change to the observer, beyond the published study's own.
struct Variation {
  const char* name;     // DIMENSION_VALUE
  const char* summary;  // a clause
  bool of_ops;          // also where micro-operations are sampled
  void (*apply)(Observer& observer);
};

constexpr std::array variations = {
    Variation{"skid_1", "0 or 1 accesses later", false, [](Observer& o) { o.counting.skid_accesses = 0.5; }},
    Variation{"skid_10", "0 to 10 accesses later", false, [](Observer& o) { o.counting.skid_accesses = 5; }},
    Variation{"skid_100", "0 to 100 accesses later", false, [](Observer& o) { o.counting.skid_accesses = 50; }},
    Variation{"skid_20ns", "begins 0 to 20 ns later", false, [](Observer& o) { o.counting.skid_ns = 10; }},
    Variation{"skid_200ns", "begins 0 to 200 ns later", false, [](Observer& o) { o.counting.skid_ns = 100; }},
    Variation{"skid_address", "has the address of the access before", false,
              [](Observer& o) { o.counting.mismatch = Mismatch::address; }},
    Variation{"skid_instruction", "has the instruction of the access before", false,
              [](Observer& o) { o.counting.mismatch = Mismatch::instruction; }},
    Variation{"latency_50ns", "50 ns", false, [](Observer& o) { o.counting.least_latency_ns = 50; }},
    Variation{"latency_150ns", "150 ns", false, [](Observer& o) { o.counting.least_latency_ns = 150; }},
    Variation{"latency_250ns", "250 ns", false, [](Observer& o) { o.counting.least_latency_ns = 250; }},
    Variation{"board_16", "16 lines", true, [](Observer& o) { o.board_slots = 16; }},
    Variation{"board_64", "64 lines", true, [](Observer& o) { o.board_slots = 64; }},
    Variation{"board_256", "256 lines", true, [](Observer& o) { o.board_slots = 256; }},
    Variation{"method_probe", "probe", true, [](Observer& o) { o.probe = true; }},
    Variation{"late_200ns", "0.2 us", true, [](Observer& o) { o.counting.delay_ns = 200; }},
    Variation{"late_2us", "2 us", true, [](Observer& o) { o.counting.delay_ns = 2000; }},
    Variation{"late_80us", "80 us", true, [](Observer& o) { o.counting.delay_ns = 80'000; }},
};

/// One point of the study.
struct Point {
  Source source = Source::accesses;
  std::uint32_t threads = 4;
  unsigned shared_percent = 50;  // of the visits
  std::uint32_t registers = 4;
  double periods = 1;                    // of the usual period
  bool pairs = false;                    // a visit loads and then stores; else it is one update
  const Variation* variation = nullptr;  // nullptr: none
};

/// What a thread's mean visit has.
struct MeanVisit {
  double ns = 0, loads = 0, stores = 0, ops = 0;
};

/// The part of the loads that wait for their line which is counted.
double counted_part(const Scenario& scenario) {
  constexpr double longest = 1.5;  // of the mean
  return std::clamp(longest - scenario.observer.counting.least_latency_ns / scenario.latencies.transfer_ns, 0.0, 1.0);
}

MeanVisit mean_visit(const Scenario& scenario, double shared) {
  const Counting& counting = scenario.observer.counting;
  const double own = 1 - shared;
  const double shared_stores = scenario.parts.front().atomic ? 0 : shared;  // an update is counted as a load
  const double private_loads = counting.least_latency_ns > 0 ? 1 : counting.private_loads;
  MeanVisit mean;
  mean.ns = shared * scenario.latencies.transfer_ns + shared_stores * scenario.latencies.hit_ns +
            own * scenario.latencies.private_ns;
  mean.loads = shared * counted_part(scenario) + own * private_loads;
  mean.stores = shared_stores + own * counting.private_stores;
  mean.ops =
      (shared + shared_stores + own * (counting.private_loads + counting.private_stores)) * counting.ops_per_access;
  return mean;
}

/// Samples come each so much CPU time, whatever the rates of the program, as the collector has them.
void set_periods(const Point& point, double shared, Scenario& scenario) {
  const MeanVisit mean = mean_visit(scenario, shared);
  const double visits = scenario.observer.period_ns * point.periods / mean.ns;
  Counting& counting = scenario.observer.counting;
  counting.load_period = visits * mean.loads;
  counting.store_period = mean.stores > 0 ? visits * mean.stores : counting.store_period;
  counting.op_period = visits * mean.ops;
}

/// Long runs of programs that share little, or of which little is seen, since their results are mostly chance, and
/// short ones of those that make the most accesses in a second.
double duration_of(const Point& point) {
  const unsigned shared = point.shared_percent;
  const double of_share = shared < 50 ? 9e8 : shared < 80 ? 6e8 : shared < 100 ? 3e8 : 1e8;
  const double of_threads = point.threads <= 2 ? 2 : point.threads <= 4 ? 1 : 0.5;
  const double of_registers = point.registers == 1 ? 2 : 1;
  return of_share * of_threads * of_registers;
}

std::string name_of(const Point& point) {
  std::ostringstream name;
  name << "published_" << (point.source == Source::accesses ? "accesses_" : "ops_") << point.threads << "_threads_"
       << point.shared_percent << "_shared_" << point.registers << "_registers_" << point.periods << "_periods"
       << (point.pairs ? "_pairs" : "");
  if (point.variation != nullptr) {
    name << "_" << point.variation->name;
  }
  return name.str();
}

Scenario scenario_of(const Point& point) {
  static std::deque<std::string> names;
  constexpr double percent = 100;
  constexpr std::uint32_t shared_lines = 16;
  constexpr std::uint32_t private_lines = 64;
  const double shared = point.shared_percent / percent;
  Scenario scenario;
  scenario.name = names.emplace_back(name_of(point));
  scenario.summary = point.variation != nullptr ? point.variation->summary : "all threads update the same lines";
  scenario.threads = point.threads;
  scenario.duration_ns = duration_of(point);
  scenario.parts = {{Pattern::all_to_all, shared, shared_lines, 0, !point.pairs}};
  if (shared < 1) {
    scenario.parts.push_back({Pattern::private_data, 1 - shared, private_lines});
  }
  scenario.latencies.transfer_ns = transfer_ns;
  scenario.latencies.at_end = true;
  scenario.observer.source = point.source;
  scenario.observer.registers = point.registers;
  if (point.variation != nullptr) {
    point.variation->apply(scenario.observer);
  }
  set_periods(point, shared, scenario);
  return scenario;
}

/// Shares and threads, registers, and periods: what the published study varies.
void add_published(Source source, std::vector<Scenario>& list) {
  for (const std::uint32_t threads : {2U, 4U, 8U, 16U}) {
    for (const unsigned shared : {20U, 50U, 80U, 100U}) {
      list.push_back(scenario_of({source, threads, shared}));
    }
  }
  for (const std::uint32_t threads : {2U, 16U}) {
    for (const unsigned shared : {50U, 100U}) {
      for (const std::uint32_t registers : {1U, 2U}) {
        list.push_back(scenario_of({source, threads, shared, registers}));
      }
    }
  }
  for (const double periods : {0.25, 0.5, 2.0, 4.0}) {
    list.push_back(scenario_of({source, 4, 50, 4, periods}));
  }
}

/// What hardware, and its use, can be like beyond that: of updates, and of loads that their stores follow.
void add_variations(Source source, std::vector<Scenario>& list) {
  Point point;
  point.source = source;
  for (const bool pairs : {false, true}) {
    point.pairs = pairs;
    point.variation = nullptr;
    if (pairs) {
      list.push_back(scenario_of(point));
    }
    for (const Variation& variation : variations) {
      if (source == Source::accesses || variation.of_ops) {
        point.variation = &variation;
        list.push_back(scenario_of(point));
      }
    }
  }
}

std::vector<Scenario> all_points() {
  std::vector<Scenario> list;
  for (const Source source : {Source::accesses, Source::micro_ops}) {
    add_published(source, list);
    add_variations(source, list);
  }
  return list;
}

}  // namespace

std::span<const Scenario> published_scenarios() {
  static const std::vector<Scenario> list = all_points();
  return list;
}

}  // namespace crosstalk::simulation
