// SPDX-License-Identifier: Apache-2.0
// Limits of a core for kinds of instructions in registers: rates, latencies, operations on whole numbers.
#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "collectors/calibration/bench.h"
#include "collectors/calibration/core_kernels.h"
#include "collectors/calibration/cycles.h"
#include "collectors/calibration/register_code.h"

namespace crosstalk::collectors::calibration {
namespace {

using models::Element;
using models::Kind;
using models::Operation;
using models::Scope;
using models::Width;

/// Calls `make` with an effort and code, or refuses the figure.
models::Figure figure_of_code(Bench& bench, const RegisterOperation& operation, const Result<ExecutableCode>& code,
                              const std::string& method, const std::function<models::Figure(RoundsFunction*)>& make) {
  if (!operation.supported) {
    bench.schedule.skip();
    return refused(no_such_instructions, method);
  }
  if (!code) {
    bench.schedule.skip();
    return refused(code.error().message, method);
  }
  return make(code->as<RoundsFunction>());
}

models::Figure rate_of_kind(Bench& bench, Kind kind) {
  const RegisterOperation operation = operation_of(kind);
  const std::string method = "240 independent instructions in a loop, a cycle being a link of a chain of additions";
  const auto code = independent_code(operation);
  return figure_of_code(bench, operation, code, method, [&](RoundsFunction* run) {
    return per_cycle_figure(bench, method, register_round, [run](std::uint64_t rounds) { run(rounds); });
  });
}

/// Seconds for each instruction of `run`, by the slowest of the team, divided by its members.
Tries seconds_of_instructions(Bench& bench, Team& team, RoundsFunction* run, double units_a_round) {
  const Effort effort = bench.next_figure();
  std::uint64_t rounds = 0;
  bench.one.run([&](unsigned) { rounds = rounds_for(effort, [&](std::uint64_t n) { run(n); }); });
  return collect(effort, [&] {
    return seconds_together(team, units_a_round * static_cast<double>(rounds), [&](unsigned) { run(rounds); });
  });
}

}  // namespace

std::size_t count_kinds() { return 2 * models::names<Kind>().size(); }

std::size_t count_flop_latencies() { return models::names<Width>().size() * models::names<Operation>().size(); }

std::size_t count_integers() {
  constexpr std::size_t operations = 2;  // add and mul
  return models::names<Scope>().size() * models::names<Width>().size() * models::names<Element>().size() * operations;
}

std::vector<models::KindLimits> measure_kinds(Bench& bench) {
  bench.progress("retirement of instructions by kind");
  std::vector<models::KindLimits> kinds;
  for (std::size_t i = 0; i < models::names<Kind>().size(); ++i) {
    models::KindLimits limits;
    limits.kind = static_cast<Kind>(i);
    limits.per_cycle = rate_of_kind(bench, limits.kind);
    kinds.push_back(std::move(limits));
  }
  measure_buffers(bench, kinds);
  return kinds;
}

std::vector<models::FlopLatency> measure_flop_latencies(Bench& bench) {
  bench.progress("latency of floating point");
  const std::string method = "a chain of 240 instructions in a loop, in registers";
  std::vector<models::FlopLatency> latencies;
  for (std::size_t width = 0; width < models::names<Width>().size(); ++width) {
    for (const Operation operation : models::all_operations) {
      models::FlopLatency latency;
      latency.width = static_cast<Width>(width);
      latency.operation = operation;
      const auto step = operation_of(latency.width, latency.precision, operation);
      if (!step.supported) {
        bench.schedule.skip();
        continue;
      }
      latency.seconds = figure_of_code(bench, step, chain_code(step), method, [&](RoundsFunction* run) {
        return time_figure(seconds_of_instructions(bench, bench.one, run, register_round), method);
      });
      latencies.push_back(std::move(latency));
    }
  }
  return latencies;
}

std::vector<models::IntegerPeak> measure_integers(Bench& bench) {
  bench.progress("operations on whole numbers");
  const std::string method = "240 independent instructions in a loop, in registers";
  std::vector<models::IntegerPeak> peaks;
  for (const Scope scope : {Scope::one_core, Scope::all_cores}) {
    for (std::size_t width = 0; width < models::names<Width>().size(); ++width) {
      for (const Element element : {Element::int32, Element::int64}) {
        for (const Operation operation : {Operation::add, Operation::mul}) {
          models::IntegerPeak peak{static_cast<Width>(width), element, operation, scope, {}};
          const auto step = operation_of(peak.width, element, operation);
          if (!step.supported) {
            bench.schedule.skip();
            continue;
          }
          const double operations = register_round * models::integer_lanes(peak.width, element);
          peak.per_s = figure_of_code(bench, step, independent_code(step), method, [&](RoundsFunction* run) {
            return rate_figure(seconds_of_instructions(bench, bench.team(scope), run, operations), method);
          });
          peaks.push_back(std::move(peak));
        }
      }
    }
  }
  return peaks;
}

}  // namespace crosstalk::collectors::calibration
