// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/published.h"

#include <deque>
#include <sstream>
#include <string>
#include <vector>

namespace crosstalk::simulation {
namespace {

/// One point of the study.
struct Point {
  Source source = Source::accesses;
  std::uint32_t threads = 4;
  unsigned shared_percent = 50;  // of the visits
  std::uint32_t registers = 4;
  double periods = 1;  // of the usual period
};

/// What a thread's mean visit has.
struct MeanVisit {
  double ns = 0, loads = 0, stores = 0, ops = 0;
};

MeanVisit mean_visit(const Scenario& scenario, double shared) {
  const Counting& counting = scenario.observer.counting;
  const double own = 1 - shared;
  MeanVisit mean;
  mean.ns = shared * scenario.latencies.transfer_ns + own * scenario.latencies.private_ns;
  mean.loads = shared + own * counting.private_loads;  // an update is counted as a load
  mean.stores = own * counting.private_stores;
  mean.ops = (mean.loads + mean.stores) * counting.ops_per_access;
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

std::string name_of(const Point& point) {
  std::ostringstream name;
  name << "published_" << (point.source == Source::accesses ? "accesses_" : "ops_") << point.threads << "_threads_"
       << point.shared_percent << "_shared_" << point.registers << "_registers_" << point.periods << "_periods";
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
  scenario.summary = "all threads update the same lines";
  scenario.threads = point.threads;
  scenario.parts = {{Pattern::all_to_all, shared, shared_lines, 0, true}};
  if (shared < 1) {
    scenario.parts.push_back({Pattern::private_data, 1 - shared, private_lines});
  }
  scenario.latencies.transfer_ns = 200;  // as the other scenarios of sources that count
  scenario.observer.source = point.source;
  scenario.observer.registers = point.registers;
  set_periods(point, shared, scenario);
  return scenario;
}

std::vector<Scenario> all_points() {
  std::vector<Scenario> list;
  for (const Source source : {Source::accesses, Source::micro_ops}) {
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
  return list;
}

}  // namespace

std::span<const Scenario> published_scenarios() {
  static const std::vector<Scenario> list = all_points();
  return list;
}

}  // namespace crosstalk::simulation
