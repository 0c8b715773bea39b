// SPDX-License-Identifier: Apache-2.0
// How many instructions of a kind fit in the re-order buffer between two loads that miss all caches.
#include <algorithm>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/units.h"
#include "collectors/calibration/bench.h"
#include "collectors/calibration/knee.h"
#include "collectors/calibration/memory_block.h"
#include "collectors/calibration/pointer_chain.h"
#include "collectors/calibration/register_code.h"
#include "collectors/calibration/working_set.h"

namespace crosstalk::collectors::calibration {
namespace {

constexpr const char* buffer_method =
    "two loads that miss all caches, with fillers behind each: the number at which half of the rounds take twice the "
    "time";
constexpr std::uint64_t rounds_of_try = 500;

/// Loads that miss, of one core.
class MissingLoads {
 public:
  /// Lays out a circle of pointers in each half of the memory. Refused if that is not done in time.
  static Result<MissingLoads> make(Bench& bench) {
    const std::uint32_t cpu = bench.cores.back();
    const auto bytes = working_set(bench.machine, models::Level::memory, {cpu}, bench.available(), bench.beyond_caches);
    if (!bytes) {
      return tl::unexpected<Error>(bytes.error());
    }
    bench.memory.expect({cpu});
    const std::uint64_t ready_ns = bench.preparation_deadline_ns();
    Result<MissingLoads> loads = fail(ErrorCode::system,
                                      "the pointers were not laid out in time: the machine is too "
                                      "busy");
    bench.one.run([&](unsigned) {
      constexpr std::uint32_t line_bytes = 64;
      const auto block = bench.memory.block(cpu, *bytes + arrays_slack, ready_ns);
      if (!block) {
        loads = tl::unexpected<Error>(block.error());
        return;
      }
      const std::uint64_t half = *bytes / 2 / line_bytes * line_bytes;
      MissingLoads made;
      made.places_ = {make_pointer_chain((*block)->data(), half, line_bytes, 1, ready_ns),
                      make_pointer_chain((*block)->data() + half, half, line_bytes, 2, ready_ns)};
      if (made.places_.a != nullptr && made.places_.b != nullptr) {
        loads = made;
      }
    });
    return loads;
  }

  /// Seconds of a round, the best of some tries; nullopt: all were disturbed.
  std::optional<double> seconds(Bench& bench, const RegisterOperation& operation, unsigned fillers, unsigned tries) {
    const auto code = buffer_code(operation, fillers);
    std::optional<double> best, best_disturbed;
    for (unsigned i = 0; code && i < tries; ++i) {
      const TeamTime time = bench.one.run([&](unsigned) { code->as<BufferFunction>()(places_, rounds_of_try); });
      std::optional<double>& slot = time.disturbed ? best_disturbed : best;
      slot = std::min(slot.value_or(time.longest_s), time.longest_s);
    }
    const auto of_rounds = [](double seconds) { return seconds / static_cast<double>(rounds_of_try); };
    return best             ? std::optional(of_rounds(*best))
           : best_disturbed ? std::optional(of_rounds(*best_disturbed))
                            : std::nullopt;
  }

 private:
  TwoPlaces places_;
};

/// Instructions a second of a kind on one core.
std::optional<double> rate_of(const Bench& bench, const models::KindLimits& limits) {
  const auto hz = bench.machine.frequency.one_core_hz.value;
  return hz && limits.per_cycle.value ? std::optional(*hz * *limits.per_cycle.value) : std::nullopt;
}

std::vector<BufferTime> times_of(Bench& bench, const Effort& effort, MissingLoads& loads,
                                 const RegisterOperation& operation, const std::vector<unsigned>& numbers) {
  std::vector<BufferTime> times;
  for (const unsigned fillers : numbers) {
    const auto seconds = monotonic_ns() < effort.deadline_ns
                             ? loads.seconds(bench, operation, fillers, effort.least_tries / 2 + 1)
                             : std::nullopt;
    if (seconds) {
      times.push_back({fillers, *seconds});
    }
  }
  return times;
}

std::vector<unsigned> every(unsigned step, unsigned from, unsigned to) {
  std::vector<unsigned> numbers;
  for (unsigned n = from; n <= to; n += step) {
    numbers.push_back(n);
  }
  return numbers;
}

/// Looks coarsely first and then at the knee.
models::Figure buffer_of(Bench& bench, MissingLoads& loads, const models::KindLimits& limits) {
  constexpr unsigned coarse = 16, fine = 2, least = 16;
  const RegisterOperation operation = operation_of(limits.kind);
  const Effort effort = bench.next_figure();
  const auto rate = rate_of(bench, limits);
  const auto latency_s = loads.seconds(bench, operation, least, effort.least_tries);
  if (!rate || !latency_s) {
    return refused("the rate of these instructions is not known", buffer_method);
  }
  const unsigned most = most_fillers(*latency_s, *rate);
  std::vector<BufferTime> times = times_of(bench, effort, loads, operation, every(coarse, least, most));
  const auto rough = find_knee(times, *rate);
  if (!rough) {
    return refused("there is no knee up to " + std::to_string(times.empty() ? 0 : times.back().fillers) +
                       " instructions: they take as long as the loads, or the machine is too busy",
                   buffer_method);
  }
  const auto from = static_cast<unsigned>(std::max(rough->low - coarse, double{least}));
  const auto more = times_of(bench, effort, loads, operation,
                             every(fine, from, std::min(most, static_cast<unsigned>(rough->high) + coarse)));
  times.insert(times.end(), more.begin(), more.end());
  std::stable_sort(times.begin(), times.end(),
                   [](const BufferTime& a, const BufferTime& b) { return a.fillers < b.fillers; });
  const auto knee = find_knee(times, *rate);
  if (!knee) {
    return refused("the knee was not seen again: the machine is too busy", buffer_method);
  }
  models::Figure figure;
  figure.value = figure.median = static_cast<double>(static_cast<unsigned>(knee->fillers));
  figure.spread = std::max(knee->high - knee->fillers, knee->fillers - knee->low) / knee->fillers;
  figure.tries = static_cast<std::uint32_t>(times.size());
  figure.method = buffer_method;
  return figure;
}

}  // namespace

void measure_buffers(Bench& bench, std::vector<models::KindLimits>& kinds) {
  bench.progress("the re-order buffer");
  auto loads = MissingLoads::make(bench);
  for (models::KindLimits& limits : kinds) {
    if (loads && operation_of(limits.kind).supported) {
      limits.buffer = buffer_of(bench, *loads, limits);
    } else {
      bench.schedule.skip();
      limits.buffer = refused(loads ? no_such_instructions : loads.error().message, buffer_method);
    }
  }
}

}  // namespace crosstalk::collectors::calibration
