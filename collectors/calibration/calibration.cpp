// SPDX-License-Identifier: Apache-2.0
#include "collectors/calibration/calibration.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>

#include "base/clock.h"
#include "base/units.h"
#include "collectors/calibration/bench.h"
#include "collectors/calibration/flop_kernels.h"
#include "collectors/calibration/machine_description.h"

namespace crosstalk::collectors::calibration {
namespace {

std::string now_in_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

Schedule schedule_of(const CalibrationRequest& request, std::uint64_t begin_ns, std::size_t figures) {
  const Effort effort = request.quick ? Effort{300'000, 5, 20} : Effort{};
  return {effort, begin_ns + (request.quick ? request.quick_limit_ns : request.limit_ns), figures};
}

std::size_t count_refused(const models::Machine& machine) {
  const auto refused_in = [](const auto& rows, auto figure) {
    return static_cast<std::size_t>(
        std::count_if(rows.begin(), rows.end(), [&](const auto& row) { return !(row.*figure).refused.empty(); }));
  };
  return refused_in(machine.flops, &models::FlopPeak::flops_per_s) +
         refused_in(machine.bandwidths, &models::Bandwidth::bytes_per_s) +
         refused_in(machine.latencies, &models::LoadLatency::seconds) +
         refused_in(machine.instructions, &models::InstructionRate::per_s) +
         refused_in(machine.chains, &models::ChainTime::seconds) +
         refused_in(machine.pairs, &models::ProcessorPair::transfer_s) +
         refused_in(machine.pairs, &models::ProcessorPair::contended_add_s);
}

void add_notes(const Bench& bench, models::Machine& machine) {
  std::vector<std::string>& notes = machine.notes;
  notes.emplace_back("figures of one core are of processor " + std::to_string(bench.cores.back()) +
                     ", those of all cores of " + std::to_string(bench.cores.size()) +
                     (bench.cores.size() == 1 ? " core" : " cores") + ", one thread on each");
  if (bench.cpus.size() < machine.processors.size()) {
    notes.push_back("only " + std::to_string(bench.cpus.size()) + " of the machine's " +
                    std::to_string(machine.processors.size()) + " processors may be used by this user");
  }
  if (machine.identity.virtual_machine) {
    notes.emplace_back("a virtual machine: other guests may use the same cores, caches and memory");
  }
  for (const models::Width width : {models::Width::avx2, models::Width::avx512}) {
    if (!is_supported(width)) {
      notes.push_back("this processor has no " + std::string(name(width)) + " instructions");
    }
  }
  if (const std::size_t refused = count_refused(machine); refused > 0) {
    notes.push_back("figures that are absent, each of which says why: " + std::to_string(refused));
  }
}

/// All cores together do not do less than one of them; memory may give several a little less than one.
template <class Row, class Same>
void refuse_less_than_one_core(std::vector<Row>& rows, models::Figure Row::*figure, Same same) {
  constexpr double least = 0.7;
  for (Row& row : rows) {
    const auto one = std::find_if(rows.begin(), rows.end(), [&](const Row& other) {
      return other.scope == models::Scope::one_core && same(row, other);
    });
    models::Figure& all = row.*figure;
    if (one != rows.end() && all.value && ((*one).*figure).value && *all.value < least * *((*one).*figure).value) {
      all.value.reset();
      all.refused = "it is less than what one core does alone: the cores were not free at the same time";
    }
  }
}

void refuse_less_than_one_core(models::Machine& machine) {
  refuse_less_than_one_core(machine.flops, &models::FlopPeak::flops_per_s, [](const auto& a, const auto& b) {
    return a.width == b.width && a.precision == b.precision && a.operation == b.operation;
  });
  refuse_less_than_one_core(machine.bandwidths, &models::Bandwidth::bytes_per_s,
                            [](const auto& a, const auto& b) { return a.level == b.level && a.traffic == b.traffic; });
}

void measure(Bench& bench, models::Machine& machine) {
  machine.frequency = measure_frequency(bench);  // first: theoretical peaks are in terms of it
  machine.chains = measure_chains(bench);
  machine.instructions = measure_instructions(bench);
  machine.flops = measure_flops(bench);
  machine.latencies = measure_latencies(bench, machine.page_bytes);
  machine.bandwidths = measure_bandwidths(bench);
  machine.pairs = measure_pairs(bench);
}

}  // namespace

std::uint64_t Bench::available() const {
  const std::uint64_t bytes = available_memory();
  return bytes != 0 ? bytes + memory.bytes() : 0;  // 0: not known
}

std::size_t count_figures(const models::Machine& machine, const std::vector<std::uint32_t>& cpus) {
  constexpr std::size_t frequencies = 4, scopes = 2;
  const auto kernels = flop_kernels();
  const auto supported =
      std::count_if(kernels.begin(), kernels.end(), [](const FlopKernel& kernel) { return is_supported(kernel); });
  return frequencies + models::names<models::Chain>().size() + models::names<models::Instruction>().size() +
         models::names<models::Level>().size() +
         scopes * (static_cast<std::size_t>(supported) + bandwidths_of_a_scope) +
         2 * choose_pairs(machine, cpus).size();
}

Result<models::Machine> calibrate_machine(const CalibrationRequest& request) {
  const std::uint64_t begin_ns = monotonic_ns();
  auto machine = describe_machine();
  if (!machine) {
    return machine;
  }
  const std::vector<std::uint32_t> cpus = usable_processors();
  const std::vector<std::uint32_t> cores = one_of_each_core(*machine, cpus);
  if (cores.empty()) {
    return fail(ErrorCode::system, "the kernel does not say which processors may be used");
  }
  Team one({cores.back()});
  Team all(cores);
  Bench bench{*machine,        schedule_of(request, begin_ns, count_figures(*machine, cpus)), cpus, cores, one, all,
              request.progress};
  bench.beyond_caches = request.quick ? 2 : 4;
  machine->version = request.version;
  machine->quick = request.quick;
  machine->measured_at = now_in_utc();
  measure(bench, *machine);
  refuse_less_than_one_core(*machine);
  models::refuse_nonsense(*machine);
  add_notes(bench, *machine);
  machine->measuring_s = std::round(static_cast<double>(monotonic_ns() - begin_ns) / ns_per_s * 1e3) / 1e3;
  if (const auto valid = models::validate(*machine); !valid) {
    return fail(ErrorCode::refused, "what this machine tells of itself makes no sense: " + valid.error().message);
  }
  return machine;
}

}  // namespace crosstalk::collectors::calibration
