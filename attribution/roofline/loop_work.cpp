// SPDX-License-Identifier: Apache-2.0
#include "attribution/roofline/loop_work.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace crosstalk::attribution {
namespace {

using models::Unit;
using models::roofline::Basis;
using models::roofline::Estimate;
using models::roofline::IntegerWork;
using models::roofline::LoopPoint;

// The traffic of levels beyond the first is modelled. Kernels that one level limits kept it busy for 81 to 98 % of the
// time by this model (docs/accuracy.md, "Busy times, work and waits").
constexpr double traffic_error = 0.25;
constexpr double least_part = 0.01;  // of the longest thread's time: a thread with less does not count

Result<Estimate> unknown(const std::string& why) { return fail(ErrorCode::not_found, why.empty() ? "not known" : why); }

/// The amount of an iteration. Its interval leaves out the uncertainty of the number of iterations.
Result<Estimate> amount_of(const Rate& rate, const Rate& iterations) {
  if (!rate.per_s) {
    return unknown(rate.unknown);
  }
  const auto width = [](const Rate& of) {
    return of.ci95 && *of.per_s > 0 ? (of.ci95->high - of.ci95->low) / 2 / *of.per_s : 0.0;
  };
  const double amount = *rate.per_s / *iterations.per_s;
  if (rate.lookaheads == 0 && !rate.counted) {
    return Estimate::exact(amount, Basis::decoded);
  }
  const double all = width(rate);
  const double of_iterations = width(iterations);
  const double own = std::min(1.0, std::sqrt(std::max(0.0, all * all - of_iterations * of_iterations)));
  return Estimate::of(amount, amount * (1 - own), amount * (1 + own), Basis::sampled);
}

/// Seconds of an iteration of one thread.
Result<Estimate> iteration_time(double rate, const std::optional<Interval>& interval) {
  const Interval ci95 = interval.value_or(Interval{rate, rate});
  const double low = std::max(ci95.low, rate * 1e-3);
  return Estimate::of(1 / rate, 1 / std::max(ci95.high, rate), 1 / std::min(low, rate), Basis::sampled);
}

Result<Estimate> bytes_from(const LoopFigures& figures, Unit unit, double iterations_per_s) {
  const auto& per_s = figures.per_s[unit];
  if (!per_s) {
    return unknown(figures.reasons[unit]);
  }
  const double bytes = *per_s / iterations_per_s;
  return Estimate::of(bytes, bytes * (1 - traffic_error), bytes * (1 + traffic_error), Basis::modelled);
}

/// Bytes that its instructions ask for. Masks of gathers may leave elements out, so all of them are the upper bound.
Result<Estimate> core_bytes_of(const LoopRow& loop) {
  const auto& body = loop.figures->body;
  if (!loop.rates.bytes.per_s && body && body->one_way && body->gathers > 0 && body->only_gathers_vary) {
    const double most = body->access_bytes + body->gathered_bytes;
    return Estimate::of(most, body->access_bytes, most, Basis::assumed);
  }
  return amount_of(loop.rates.bytes, loop.rates.iterations);
}

/// The counted operations of an iteration.
Result<Estimate> operations_of(const LoopWork& work) {
  const Rate& iterations = work.loop->rates.iterations;
  if (work.ops == CountedOperations::integer) {
    double sum = 0;
    for (const IntegerWork& some : work.integers) {
      sum += some.operations;
    }
    const auto& body = work.figures().body;
    return body && body->one_way && body->integers_fixed ? Estimate::exact(sum, Basis::decoded)
           : body && body->integers_fixed
               ? Estimate::of(sum, 0, 2 * sum, Basis::modelled)  // ways are taken to be equally frequent
               : unknown("its operations on whole numbers cannot be counted in its code");
  }
  auto all = amount_of(work.loop->rates.flops, iterations);
  const auto& flops = work.figures().flops;
  if (!all || work.ops == CountedOperations::floating) {
    return all;
  }
  if (!flops) {
    return unknown("the kinds of its operations are not known");
  }
  return scaled(*all, work.mix.total() / flops->total());
}

/// `mix` without the operations of the other precision.
models::FlopMix of_precision(const models::FlopMix& mix, models::Precision precision) {
  using models::FlopMix;
  models::FlopMix some;
  models::for_each_kind([&](models::Width width, models::Precision each, models::Operation operation) {
    if (each == precision) {
      some.add(width, precision, operation, mix.of[FlopMix::index(width, precision, operation)]);
    }
  });
  return some;
}

std::vector<IntegerWork> integers_in(const symbolizer::LoopBodyFacts& body) {
  using symbolizer::IntegersByKind;
  std::vector<IntegerWork> found;
  for (std::size_t width = 0; width < IntegersByKind::widths; ++width) {
    for (std::size_t element = 0; element < IntegersByKind::elements; ++element) {
      for (std::size_t operation = 0; operation < IntegersByKind::operations; ++operation) {
        const double operations =
            body.integers.of[(width * IntegersByKind::elements + element) * IntegersByKind::operations + operation];
        if (operations > 0) {
          found.push_back({static_cast<models::Width>(width), 1U << element,
                           operation == static_cast<std::size_t>(symbolizer::IntegerOperation::mul), operations});
        }
      }
    }
  }
  return found;
}

void choose_operations(LoopWork& work) {
  const LoopFigures& figures = work.figures();
  if (work.ops == CountedOperations::integer) {
    work.integers = figures.body ? integers_in(*figures.body) : std::vector<IntegerWork>();
    return;
  }
  using models::Precision;
  const models::FlopMix all = figures.flops.value_or(models::FlopMix{});
  const double doubles = all.of_precision(Precision::double_precision);
  const double singles = all.of_precision(Precision::single_precision);
  work.precision = work.ops == CountedOperations::fp32 || (work.ops == CountedOperations::floating && singles > doubles)
                       ? Precision::single_precision
                       : Precision::double_precision;
  work.mix = work.ops == CountedOperations::floating ? all : of_precision(all, work.precision);
}

/// Instructions of an iteration by kind, from its operations by kind.
void count_instructions(LoopWork& work) {
  LoopPoint& point = work.point;
  const auto& body = work.figures().body;
  const Rate& iterations = work.loop->rates.iterations;
  const auto instructions = amount_of(work.loop->rates.instructions, iterations);
  point.memory_instructions = body && body->one_way ? Estimate::exact(body->memory_instructions, Basis::decoded)
                                                    : sum(amount_of(work.loop->rates.loads, iterations),
                                                          amount_of(work.loop->rates.stores, iterations));
  if (instructions && point.memory_instructions) {
    point.other_instructions = combined([](double all, double memory) { return std::max(0.0, all - memory); },
                                        rising(*instructions), falling(*point.memory_instructions));
  } else {
    point.other_instructions = instructions ? point.memory_instructions : instructions;
  }
  if (work.ops == CountedOperations::integer || !work.figures().flops || work.mix.other > 0) {
    return;
  }
  double all = 0, vectors = 0, fused = 0, multiply = 0, add = 0;
  models::for_each_kind([&](models::Width width, models::Precision precision, models::Operation operation) {
    const double count = work.mix.of[models::FlopMix::index(width, precision, operation)] /
                         models::flops(width, precision, operation) / *iterations.per_s;
    all += count;
    vectors += width == models::Width::scalar ? 0 : count;
    (operation == models::Operation::fma ? fused : operation == models::Operation::mul ? multiply : add) += count;
  });
  const Basis basis = body && body->one_way ? Basis::decoded : Basis::modelled;
  const auto exactly = [basis](double count) { return Estimate::exact(count, basis); };
  point.fp_instructions = exactly(all);
  point.simd_instructions = exactly(vectors);
  point.fma_instructions = exactly(fused);
  point.multiply_instructions = exactly(multiply);
  point.add_instructions = exactly(add);
}

/// The width of most accesses, by their mean size.
std::optional<models::Width> access_width(const LoopWork& work) {
  const auto& bytes = work.figures().access_bytes;
  if (!bytes) {
    return std::nullopt;
  }
  return *bytes > 40   ? models::Width::avx512
         : *bytes > 20 ? models::Width::avx2
         : *bytes > 10 ? models::Width::sse
                       : models::Width::scalar;
}

void describe_accesses(LoopWork& work) {
  const LoopRates& rates = work.loop->rates;
  const auto& body = work.figures().body;
  const double stores = rates.stores.per_s.value_or(body ? body->stores : 0);
  const double loads = rates.loads.per_s.value_or(body ? body->loads + body->gathers : 0);
  work.accesses.store_share = stores + loads > 0 ? std::clamp(stores / (stores + loads), 0.0, 1.0) : 0;
  work.accesses.streaming = body && body->stores > 0 && 2 * body->streaming_stores > body->stores;
  work.accesses.width = access_width(work);
}

/// The reason why no model can place the loop; empty: some may.
std::string obstacle(const LoopRow& loop) {
  if (!loop.figures) {
    return "it takes less than a thousandth of the CPU time";
  }
  return loop.rates.iterations.per_s ? "" : loop.rates.iterations.unknown;
}

void count_members(LoopWork& work, const models::Machine& machine) {
  double most = 0;
  for (const LoopThread& thread : work.loop->threads) {
    most = std::max(most, thread.cpu_s);
  }
  const auto members = std::count_if(work.loop->threads.begin(), work.loop->threads.end(),
                                     [&](const LoopThread& thread) { return thread.cpu_s > least_part * most; });
  // Without times by thread, as many as their times tell.
  work.at_work = std::max(1.0, work.figures().threads);
  work.members = std::max<std::uint32_t>(static_cast<std::uint32_t>(members),
                                         static_cast<std::uint32_t>(std::lround(work.at_work)));
  const auto processors = static_cast<double>(std::max<std::size_t>(1, machine.processors.size()));
  work.at_work = std::min(work.at_work, processors);
  work.at_most = std::min<double>(work.members, processors);
}

Result<LoopWork> described(LoopWork work, double iterations_per_s, const std::optional<Interval>& ci95,
                           const models::Machine& machine) {
  choose_operations(work);
  LoopPoint& point = work.point;
  point.flops = operations_of(work);
  if (point.flops && point.flops->value() <= 0) {
    point.flops = unknown(work.ops == CountedOperations::integer ? "it does no operation on whole numbers"
                          : work.ops == CountedOperations::fp64  ? "it does no operation in double precision"
                          : work.ops == CountedOperations::fp32  ? "it does no operation in single precision"
                                                                 : "it does no floating-point operation");
  }
  point.bytes_core = core_bytes_of(*work.loop);
  const double rate = *work.loop->rates.iterations.per_s;
  point.bytes_l2 = bytes_from(work.figures(), Unit::l2, rate);
  point.bytes_l3 = bytes_from(work.figures(), Unit::l3, rate);
  point.bytes_memory = bytes_from(work.figures(), Unit::memory, rate);
  count_instructions(work);
  describe_accesses(work);
  point.cpu_s = iteration_time(iterations_per_s, ci95);
  point.elapsed_s = point.cpu_s ? scaled(*point.cpu_s, 1 / work.at_work) : point.cpu_s;
  point.setting.threads = work.threads.part_of_one || work.at_work <= 1 ? 1 : std::max(2U, work.members);
  point.hz = models::roofline::core_hz(machine, work.threads.at_once);
  return work;
}

}  // namespace

const char* operation_unit(CountedOperations ops) { return ops == CountedOperations::integer ? "op" : "flop"; }

Result<LoopWork> work_of_loop(const LoopRow& loop, const models::Machine& machine, const RooflineOptions& options) {
  if (const std::string why = obstacle(loop); !why.empty()) {
    return fail(ErrorCode::not_found, why);
  }
  LoopWork work;
  work.loop = &loop;
  work.own_s = loop.self_s;
  work.ops = options.ops;
  count_members(work, machine);
  work.threads = {options.threads.value_or(work.members), false};
  return described(std::move(work), *loop.rates.iterations.per_s, loop.rates.iterations.ci95, machine);
}

Result<LoopWork> work_of_thread(const LoopRow& loop, const LoopThread& thread, const models::Machine& machine,
                                const RooflineOptions& options) {
  if (const std::string why = obstacle(loop); !why.empty()) {
    return fail(ErrorCode::not_found, why);
  }
  LoopWork work;
  work.loop = &loop;
  work.thread = &thread;
  work.own_s = thread.self_s;
  work.ops = options.ops;
  count_members(work, machine);
  work.threads = {options.threads.value_or(work.members), true};
  work.members = 1;
  work.at_work = work.at_most = 1;
  const bool alone = loop.threads.size() == 1;
  if (!thread.iterations_per_s && !alone) {
    return fail(ErrorCode::not_found, "the rate of one of its threads is not known: too few samples of that thread");
  }
  return alone ? described(std::move(work), *loop.rates.iterations.per_s, loop.rates.iterations.ci95, machine)
               : described(std::move(work), *thread.iterations_per_s, thread.iterations_ci95, machine);
}

Result<models::roofline::Roof> compute_roof_of(const LoopWork& work, const models::Machine& machine) {
  if (!work.point.flops) {
    return tl::unexpected<Error>(work.point.flops.error());
  }
  return work.ops == CountedOperations::integer ? models::roofline::integer_roof(machine, work.integers, work.threads)
         : work.mix.total() > 0                 ? models::roofline::compute_roof(machine, work.mix, work.threads)
                                : fail(ErrorCode::not_found, "the kinds of its operations are not known");
}

}  // namespace crosstalk::attribution
