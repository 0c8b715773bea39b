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
  if (const std::size_t refused = models::count_refused(machine); refused > 0) {
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
  refuse_less_than_one_core(machine.integers, &models::IntegerPeak::per_s, [](const auto& a, const auto& b) {
    return a.width == b.width && a.element == b.element && a.operation == b.operation;
  });
  refuse_less_than_one_core(machine.sparse_roofs, &models::SparseRoof::bytes_per_s,
                            [](const auto& a, const auto& b) { return a.matrix == b.matrix && a.vector == b.vector; });
}

void refuse_less_than_one_thread(models::Machine& machine) {
  constexpr double least = 0.7;
  for (models::AccessRate& row : machine.accesses) {
    const models::Figure* const one = machine.accesses_of(row.level, row.width, row.mix, 1);
    models::Figure& figure = row.bytes_per_s;
    if (one != nullptr && one->value && figure.value && *figure.value < least * *one->value) {
      figure.value.reset();
      figure.refused = "it is less than what one core does alone: the cores were not free at the same time";
    }
  }
}

/// Refuses figures that contradict others.
void check_figures(models::Machine& machine) {
  refuse_less_than_one_core(machine);
  refuse_less_than_one_thread(machine);
  models::refuse_nonsense(machine);
}

/// The figures of rooflines that are not there.
void measure_rooflines(Bench& bench, models::Machine& machine) {
  if (machine.kinds.empty()) {
    machine.kinds = measure_kinds(bench);
  }
  if (machine.flop_latencies.empty()) {
    machine.flop_latencies = measure_flop_latencies(bench);
  }
  if (machine.integers.empty()) {
    machine.integers = measure_integers(bench);
  }
  if (machine.accesses.empty()) {
    machine.thread_flops = measure_thread_flops(bench);
    machine.accesses = measure_accesses(bench);
  }
  if (machine.groups.empty()) {
    machine.groups = measure_groups(bench);
  }
  if (machine.ridges.empty()) {
    machine.ridges = measure_ridges(bench, machine);
  }
  if (machine.sparse_roofs.empty()) {
    machine.sparse_roofs = measure_sparse_roofs(bench);
  }
  if (machine.sparse_bands.empty()) {
    machine.sparse_bands = measure_sparse_bands(bench);
  }
}

std::size_t count_rooflines(const models::Machine& machine, std::size_t cores) {
  return (machine.kinds.empty() ? count_kinds() : 0) + (machine.flop_latencies.empty() ? count_flop_latencies() : 0) +
         (machine.integers.empty() ? count_integers() : 0) +
         (machine.accesses.empty() ? count_thread_flops(cores) + count_accesses(cores) : 0) +
         (machine.groups.empty() ? count_groups() : 0) + (machine.ridges.empty() ? count_ridges() : 0) +
         (machine.sparse_roofs.empty() ? count_sparse_roofs() : 0) +
         (machine.sparse_bands.empty() ? count_sparse_bands() : 0);
}

void measure(Bench& bench, models::Machine& machine) {
  machine.frequency = measure_frequency(bench);  // first: theoretical peaks are in terms of it
  machine.chains = measure_chains(bench);
  machine.instructions = measure_instructions(bench);
  machine.flops = measure_flops(bench);
  machine.latencies = measure_latencies(bench, machine.page_bytes);
  machine.bandwidths = measure_bandwidths(bench);
  machine.pairs = measure_pairs(bench);
  measure_rooflines(bench, machine);
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
         2 * choose_pairs(machine, cpus).size() + count_rooflines(machine, one_of_each_core(machine, cpus).size());
}

Result<models::Machine> calibrate_machine(const CalibrationRequest& request) {
  const std::uint64_t begin_ns = monotonic_ns();
  auto machine = request.known ? Result<models::Machine>(*request.known) : describe_machine();
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
  const std::size_t figures = request.known ? count_rooflines(*machine, cores.size()) : count_figures(*machine, cpus);
  Bench bench{*machine, schedule_of(request, begin_ns, figures), cpus, cores, one, all, request.progress};
  bench.beyond_caches = request.quick ? 2 : 4;
  if (request.known) {
    machine->extended_at = now_in_utc();
    machine->notes.clear();
    measure_rooflines(bench, *machine);
  } else {
    machine->version = request.version;
    machine->quick = request.quick;
    machine->measured_at = now_in_utc();
    measure(bench, *machine);
  }
  check_figures(*machine);
  add_notes(bench, *machine);
  const double took_s = static_cast<double>(monotonic_ns() - begin_ns) / ns_per_s;
  machine->measuring_s = std::round((machine->measuring_s + took_s) * 1e3) / 1e3;
  if (const auto valid = models::validate(*machine); !valid) {
    return fail(ErrorCode::refused, "what this machine tells of itself makes no sense: " + valid.error().message);
  }
  return machine;
}

}  // namespace crosstalk::collectors::calibration
